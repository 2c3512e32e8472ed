"""Options that several commands share: the files of predictions, and the rule that decides."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from labelkin.cli._option_groups import words

COSTS_HELP = "Cost matrix with names, .csv or .npz: rows are true classes, columns answers."
ACTIONS_HELP = "Columns without a row are answers that are not classes, such as 'ask a person'."
GUARANTEE, FILE = "Fallback", "File"

# Of `audit` and `decide`, which read files of predictions.
Tree = Annotated[str | None, Option(help="Class tree: a file, 'wordnet' or a built-in tree.", metavar="FILE|NAME")]
Costs = Annotated[Path | None, Option(help=f"{COSTS_HELP} {ACTIONS_HELP}", metavar="FILE")]
Target = Annotated[
    str | None, Option(help="Array or column of true classes. Default: target, label or y.", rich_help_panel=FILE)
]
Scores = Annotated[
    str | None,
    Option(help="Array, or column of lists, with the scores. Default: logits or probs.", rich_help_panel=FILE),
]
Columns = Annotated[
    str | None,
    Option(
        help="Score columns of a table, one per class: a,b,c or 'p_*'. Default: all other columns.",
        metavar="A,B,C",
        rich_help_panel=FILE,
    ),
]
Ignore = Annotated[
    str | None,
    Option(
        help="Columns of a table that are not scores, such as customer,date. A name with a comma needs quotes: '\"a, b\",c'.",
        metavar="A,B,C",
        rich_help_panel=FILE,
    ),
]
Classes = Annotated[
    str | None,
    Option(
        help="Class names in the order of the scores: a,b,c, a text file, or 'taxonomy' for the tree's order.",
        metavar="A,B,C|FILE",
        rich_help_panel=FILE,
    ),
]

# Of `predict`, `export` and `serve`, which decide with a run.
RunRule = Annotated[
    Literal["argmax", "crm", "fallback"] | None,
    Option(
        help="argmax: the most probable class. crm: the answer of least expected cost. fallback: the most specific node of "
        "the class tree that is probable enough. Default: fallback with --coverage or --threshold, crm with --costs, otherwise "
        "argmax."
    ),
]
RunThreshold = Annotated[
    float | None, Option(help="Minimum probability of an answer of fallback. Default: 0.5.", metavar="P")
]
RunCoverage = Annotated[
    float | None,
    Option(
        help="With fallback, minimum probability that an answer is right or the root (no answer), such as 0.95. The threshold "
        "is fitted on the samples that the run held out.",
        metavar="P",
    ),
]
RunConfidence = Annotated[
    float | None,
    Option(
        help="Probability that the held-out samples give the coverage, such as 0.9. Default: it holds on average.",
        metavar="P",
    ),
]
RunCosts = Annotated[
    Path | None,
    Option(
        help=f"{COSTS_HELP} {ACTIONS_HELP} For crm; default: the run's costs, or distances in the tree.", metavar="FILE"
    ),
]


SHARES_HELP = (
    "Shares or counts of the classes in the new samples, if they differ from before: a .csv or .json file with a number for "
    "each class."
)
RunShares = Annotated[Path | None, Option(help=SHARES_HELP, metavar="FILE")]


def column_names(text: str | None) -> str | list[str] | None:
    """Return `"p_*"` unchanged, and the names in `"a,b"` as a list."""
    return text if text is None or text.endswith("*") else words(text)
