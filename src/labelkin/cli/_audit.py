"""The audit of any model."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from labelkin.cli._option_groups import words
from labelkin.cli._show import aside, say, say_json


def audit(
    predictions: Annotated[
        Path, Argument(help="A .npz, .csv, .jsonl or .parquet file: true classes, and scores or predicted labels.")
    ],
    kind: Annotated[
        Literal["logits", "probs", "labels"] | None,
        Option(help="What the file holds. Default: what one of the names logits, probs, predicted in it says."),
    ] = None,
    taxonomy: Annotated[
        str | None, Option(help="Tree of the classes: a file, 'wordnet', or a shipped one.", metavar="FILE|NAME")
    ] = None,
    costs: Annotated[
        Path | None, Option(help="Costs with class names, .csv or .npz: rows true, columns decided.", metavar="FILE")
    ] = None,
    target: Annotated[str | None, Option(help="Where the true class is. Default: target, label or y.")] = None,
    predicted: Annotated[str | None, Option(help="Where predicted labels are. Default: predicted.")] = None,
    scores: Annotated[
        str | None, Option(help="The array, or column of lists, with the scores. Default: logits or probs.")
    ] = None,
    columns: Annotated[
        str | None,
        Option(help="A table's columns of scores, one a class: a,b,c or 'p_*'. Default: all others.", metavar="A,B,C"),
    ] = None,
    classes: Annotated[
        str | None,
        Option(
            help="Class names in the order of the scores: a,b,c, a text file, or 'taxonomy' for the tree's order.",
            metavar="A,B,C|FILE",
        ),
    ] = None,
    top: Annotated[int, Option(help="Confusions listed.")] = 10,
    seed: Annotated[int, Option(help="Of the two halves, one to choose on and one to measure on.")] = 0,
    html: Annotated[Path | None, Option(help="Write a page to look at, too.", metavar="FILE")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what any model's predictions are worth: mistakes, calibration, decisions, and the structure they suggest."""
    from labelkin.audit import as_text
    from labelkin.audit import audit as run_audit

    found = run_audit(
        predictions,
        kind=kind,
        taxonomy=taxonomy,
        costs=costs,
        classes=classes,
        target=target,
        predicted=predicted,
        scores=scores,
        columns=columns if columns is None or columns.endswith("*") else words(columns),
        top=top,
        seed=seed,
    )
    if json:
        say_json(found.as_dict())
    else:
        say(as_text(found))
    if html is not None:
        from labelkin.report import write_audit_page

        aside(f"The page is in {write_audit_page(found, html)}")
