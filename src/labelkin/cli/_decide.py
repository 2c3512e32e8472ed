"""The command `labelkin decide`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from labelkin._checks import counted
from labelkin.cli._decision_options import (
    FILE,
    GUARANTEE,
    SHARES_HELP,
    Classes,
    Columns,
    Costs,
    Ignore,
    Scores,
    Target,
    Tree,
    column_names,
)
from labelkin.cli._option_groups import words
from labelkin.cli._show import say, say_actions, say_json

if TYPE_CHECKING:
    from labelkin.audit import FileDecisions


def decide(
    scores_file: Annotated[
        Path,
        Argument(help="A .csv, .jsonl, .parquet or .npz file with logits or probabilities.", metavar="FILE"),
    ],
    output: Annotated[Path, Option("--output", "-o", help="The .csv file to write.", metavar="OUT.csv")],
    taxonomy: Tree = None,
    costs: Costs = None,
    rule: Annotated[
        Literal["crm", "argmax", "fallback"] | None,
        Option(
            help="crm: the answer of least expected cost. argmax: the most probable class. fallback: an ancestor when unsure. "
            "Default: fallback with --coverage or --threshold, otherwise crm.",
        ),
    ] = None,
    labeled: Annotated[
        Path | None,
        Option(
            help="File in the same format with the true classes of held-out samples, to calibrate the probabilities.",
            metavar="FILE",
        ),
    ] = None,
    shares: Annotated[Path | None, Option(help=f"{SHARES_HELP} Needs --labeled.", metavar="FILE")] = None,
    temperature: Annotated[
        float | None, Option(help="Divide logits by this. Default: fitted on --labeled; 1 without it.")
    ] = None,
    explain: Annotated[
        bool,
        Option(
            "--explain", help="Add a column with the probabilities along the path, or the expected cost of an action."
        ),
    ] = False,
    coverage: Annotated[
        float | None,
        Option(
            help="Minimum probability that an answer is right or the root (no answer), such as 0.95. Needs --labeled.",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        Option(
            help="Probability that the labeled samples give this coverage, such as 0.9. Default: it holds on average.",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    by: Annotated[
        Literal["all", "predicted", "true"],
        Option(
            help="Guarantee the coverage over all samples, or for each predicted or true top-level subtree.",
            rich_help_panel=GUARANTEE,
        ),
    ] = "all",
    threshold: Annotated[
        float | None,
        Option(help="Minimum probability of an answer, without a guarantee.", rich_help_panel=GUARANTEE),
    ] = None,
    kind: Annotated[
        Literal["logits", "probs"] | None,
        Option(
            help="Kind of scores. Default: from the name of the array or column (logits or probs).",
            rich_help_panel=FILE,
        ),
    ] = None,
    scores: Scores = None,
    columns: Columns = None,
    ignore: Ignore = None,
    classes: Classes = None,
    target: Target = None,
    seed: Annotated[int, Option(help="Seed of the split of --labeled into two halves.", rich_help_panel=FILE)] = 0,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Decide better with the scores of any model: least expected cost, or an ancestor when unsure.

    For example: labelkin decide scores.csv -o decisions.csv --kind probs --taxonomy tree.json --coverage 0.95 --labeled
    held-out.csv
    """
    from labelkin.audit import decide_file

    result = decide_file(
        scores_file,
        output,
        kind=kind,
        taxonomy=taxonomy,
        costs=costs,
        rule=rule,
        temperature=temperature,
        coverage=coverage,
        confidence=confidence,
        threshold=threshold,
        labeled=labeled,
        shares=shares,
        by=by,
        explain=explain,
        classes=classes,
        target=target,
        scores=scores,
        columns=column_names(columns),
        ignore=words(ignore) or (),
        seed=seed,
    )
    if json:
        say_json(result._asdict())
    else:
        _say(result)


def _say(result: FileDecisions) -> None:
    shares = [100 * count / result.samples for count in (result.classes, result.ancestors, result.none, result.changed)]
    say(f"Wrote {counted(result.samples, 'decision')} to {result.output}")
    if result.rule == "fallback":
        say(f"{shares[0]:.1f} % are a class, {shares[1]:.1f} % an ancestor, {shares[2]:.1f} % the root (no answer).")
    else:
        say(f"{result.changed:,} ({shares[3]:.1f} %) differ from the most probable class.")
    say_actions(result.actions or {}, result.samples)
    if result.temperature != 1:
        say(f"Temperature {result.temperature:.3g}.")
    for name, value in (result.thresholds or {}).items():
        below = f" below {name}" if len(result.thresholds or {}) > 1 else ""
        if value > 1:
            say(f"Nothing{below} is answered: too few or too bad held-out samples for this coverage.")
        elif value == 0:
            say(f"A class{below} is always answered; fewer are wrong than the coverage allows.")
        else:
            say(f"A node{below} is answered from a probability of {value:.4f}.")
