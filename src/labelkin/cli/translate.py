"""What a run that translates is for: translating, and seeing which labels it found alike."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin.cli.run import Run
from labelkin.cli.show import results_last, say, say_json, say_table


def translate(
    run: Run,
    file: Annotated[Path, Argument(help="A sentence a line, UTF-8; also .gz.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write here instead of to the screen.", metavar="FILE")
    ] = None,
    beam: Annotated[int | None, Option(help="Width of the search; 1 is greedy. Default: the run's.")] = None,
    length_penalty: Annotated[
        float | None, Option(help="0: plain probability. 1: mean over words. Default: the run's.")
    ] = None,
) -> None:
    """Translate a file, line by line, with a run on a parallel corpus."""
    from labelkin.experiments.translator import translate_file

    with results_last():
        found = translate_file(run, file, output, beam=beam, length_penalty=length_penalty)
    if output is None:
        for line in found:
            say(line)
    else:
        say(f"{len(found)} translations in {output}")


def inspect(
    run: Run,
    label: Annotated[list[str], Option(help="A word or class name; again for more.", metavar="NAME")],
    top: Annotated[int, Option(help="How many.")] = 10,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the labels nearest to one, by the embedding that the run learned."""
    from labelkin.experiments.neighbours import nearest_labels

    with results_last():
        found = nearest_labels(run, label, top=top)
    if json:
        say_json([entry._asdict() for entry in found])
    else:
        say_table(("label", "nearest, nearest first"), [(entry.label, ", ".join(entry.nearest)) for entry in found])
