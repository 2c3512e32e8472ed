"""The objectives there are."""

from typing import Annotated

from typer import Option

from labelkin.cli.show import say, say_json, say_table


def objectives(json: Annotated[bool, Option("--json", help="Print JSON, with the options' defaults.")] = False) -> None:
    """List the objectives, what each needs and what --set may set."""
    from labelkin.experiments.describe import describe_objectives

    found = describe_objectives()
    if json:
        say_json([entry._asdict() for entry in found])
        return
    rows = [(entry.name, ", ".join(entry.needs) or "-", entry.summary) for entry in found]
    say_table(("objective", "needs", "what it is"), rows)
    say("")
    say("What an objective needs follows from data and taxonomy. Options for --set:")
    for entry in found:
        say(f"  {entry.name}: {', '.join(entry.options)}")
