"""The objectives there are."""

from typing import Annotated

from typer import Option

from labelkin.cli.show import say, say_json, say_table


def objectives(json: Annotated[bool, Option("--json", help="Print JSON, with the options' defaults.")] = False) -> None:
    """List the objectives, what each needs and what --set may set."""
    from labelkin.experiments.describe import describe_objectives

    found = describe_objectives()
    words = {entry.name: _words(entry.name) for entry in found}
    if json:
        say_json([{**entry._asdict(), "words": words[entry.name]} for entry in found])
        return
    rows = [(entry.name, ", ".join(entry.needs) or "-", entry.summary) for entry in found]
    say_table(("objective", "needs", "what it is"), rows)
    say("")
    say("What an objective needs follows from data and taxonomy. Options for --set:")
    for entry in found:
        say(f"  {entry.name}: {', '.join([*words[entry.name], *entry.options])}")
    say("")
    for name, meaning in {name: meaning for own in words.values() for name, meaning in own.items()}.items():
        say(f"  {name}: {meaning}")


def _words(objective: str) -> dict[str, str]:
    """The options that are arrays and may be set by a word or a file."""
    from labelkin.experiments.spec import WORDS, option_names

    return {name: WORDS[name] for name in option_names(objective) if name in WORDS}
