"""The command `labelkin audit`."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._decision_options import FILE, Classes, Columns, Costs, Ignore, Scores, Target, Tree, column_names
from labelkin.cli._next_steps import next_steps
from labelkin.cli._option_groups import words
from labelkin.cli._show import say, say_json, say_status
from labelkin.cli._taxonomy import check_tree_file, write_tree


def audit(
    predictions: Annotated[
        Path,
        Argument(
            help="A .npz, .csv, .jsonl or .parquet file with true classes and scores or predicted labels, or the folder of a "
            "finished run."
        ),
    ],
    kind: Annotated[
        Literal["logits", "probs", "labels"] | None,
        Option(
            help="Kind of predictions. Default: from the name of the array or column (logits, probs or predicted).",
            rich_help_panel=FILE,
        ),
    ] = None,
    taxonomy: Tree = None,
    costs: Costs = None,
    target: Target = None,
    predicted: Annotated[
        str | None, Option(help="Array or column of predicted labels. Default: predicted.", rich_help_panel=FILE)
    ] = None,
    scores: Scores = None,
    columns: Columns = None,
    ignore: Ignore = None,
    classes: Classes = None,
    top: Annotated[int, Option(help="Number of confusions to list.")] = 10,
    seed: Annotated[
        int, Option(help="Seed of the split into two halves: one to choose settings, one to measure them.")
    ] = 0,
    html: Annotated[Path | None, Option(help="Also write an HTML page.", metavar="FILE")] = None,
    save_tree: Annotated[
        Path | None,
        Option(
            help="Also write the tree that the confusions suggest, for --taxonomy: .json, .yaml, .csv or .nwk.",
            metavar="FILE",
        ),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Audit the predictions of any model: mistakes, calibration, decisions and class structure."""
    if html is not None:
        from labelkin.report import targets

        targets(html, 1)  # refuses a file that cannot be written before anything is computed
    if save_tree is not None:
        check_tree_file(save_tree)
    from labelkin.audit import as_text
    from labelkin.audit import audit as run_audit

    result = run_audit(
        predictions,
        kind=kind,
        taxonomy=taxonomy,
        costs=costs,
        classes=classes,
        target=target,
        predicted=predicted,
        scores=scores,
        columns=column_names(columns),
        ignore=words(ignore) or (),
        top=top,
        seed=seed,
    )
    steps = ""
    if kind != "labels" and not predictions.is_dir():
        options = {"kind": kind, "target": target, "scores": scores, "columns": columns, "ignore": ignore}
        steps = next_steps(result, {**options, "classes": classes, "taxonomy": taxonomy, "costs": costs})
    if json:
        say_json(result.as_dict())
    else:
        say(as_text(result))
        if steps:
            say(f"\n{steps}")
    if save_tree is not None:
        if result.structure is None:
            raise InputError("save_tree: there is no tree to write; the audit says why under 'Parts left out'.")
        write_tree(result.structure.tree, save_tree)
        say_status(f"Wrote {save_tree}")
    if html is not None:
        from labelkin.report import write_audit_page

        say_status(f"Wrote {write_audit_page(result, html, steps=steps)}")
