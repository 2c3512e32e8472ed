"""Results by setting: the data, network and training under which objectives were compared with one-hot."""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import NamedTuple

from labelkin.comparison import (
    REFERENCE,
    Comparison,
    Row,
    comparison_as_markdown,
    comparison_verdict,
    describe_tree,
    group_by_setting,
    summarize,
)
from labelkin.runs import Results

SHOWN_BETTER, SHOWN_WORSE, UNCLEAR, ONE_SEED = "better", "worse", "no difference shown", "one seed"


class Setting(NamedTuple):
    """A comparison with one-hot in it."""

    name: str  # "cifar100, resnet-18, 15 epochs"
    file: str
    compared: Comparison

    @property
    def reference(self) -> Row:
        return next(row for row in self.compared.rows if row.label == REFERENCE)

    @property
    def noise(self) -> float:
        """The share of training labels exchanged."""
        return float(self.compared.records[REFERENCE][0].config["data_options"].get("label_noise", 0.0))

    @property
    def rivals(self) -> list[Row]:
        return [row for row in self.compared.rows if row.label != REFERENCE]


def settings_of(found: Iterable[Results]) -> list[Setting]:
    """Every setting in which one-hot was trained beside another objective."""
    settings = []
    for results in found:
        for name, runs in group_by_setting(results.runs).values():
            compared = summarize(runs, reference=REFERENCE)
            if compared.reference is not None and len(compared.rows) > 1:
                settings.append(Setting(_named(name, compared), results.name, compared))
    return settings


def _named(name: str, compared: Comparison) -> str:
    config = next(iter(compared.records.values()))[0].config
    options, tree = config["data_options"], config["taxonomy"]
    told = {
        "encoder": options.get("encoder"),
        "label noise": options.get("label_noise"),
        "validation": options.get("validation_fraction"),
        "tree": tree,
    }
    return ", ".join([name, *(f"{what} {value}" for what, value in told.items() if value)])


def outcome(row: Row) -> str:
    """What the seeds say of a row's accuracy against one-hot's."""
    if isnan(row.difference_low):
        return ONE_SEED
    if row.difference_low > 0:
        return SHOWN_BETTER
    return SHOWN_WORSE if row.difference_high < 0 else UNCLEAR


def points(row: Row) -> str:
    """`"+0.42 [+0.10, +0.74]"` points of accuracy; without an interval for one seed."""
    mean = f"{_signed(100 * row.difference)}"
    if isnan(row.difference_low):
        return mean
    return f"{mean} [{_signed(100 * row.difference_low)}, {_signed(100 * row.difference_high)}]"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


def by_objective(settings: Sequence[Setting]) -> dict[str, list[tuple[Setting, Row]]]:
    """Rows of each objective over settings, options and all."""
    found: dict[str, list[tuple[Setting, Row]]] = {}
    for setting in settings:
        for row in setting.rivals:
            found.setdefault(row.objective, []).append((setting, row))
    return found


HEAD = """# Results

Written by `make docs` from `results/*.json`; no number here is typed by hand. ± is the standard deviation over seeds;
"against one-hot" is in points of accuracy, run by run with the same seed, with the 95 % interval of the mean
(bootstrap, never narrower than Student's). Severity is how far up the tree truth and prediction meet, over the
mistakes alone, and AHD@5 how far the five best classes lie from the truth; lower is better, and both compare only on
one tree. CRM columns are after deciding by least expected distance in the tree, which costs nothing at test time.
"structure" is 001's correlation of label distances with the tree's (class means of the scores where an objective
learns no vectors). "front": no other is both as accurate and as mild. Seconds are those of one run beside others, and
no measure of speed.
"""


def tables(found: Sequence[Results]) -> str:
    return "\n".join([HEAD, *(_section(results) for results in found)]).rstrip("\n") + "\n"


def _section(results: Results) -> str:
    parts = [f"## {results.name}", f"{results.machine}, {results.date}."]
    if results.command:
        parts.append(f"```sh\n{results.command}\n```")
    parts += [f"Missing: {said}" for said in results.missing]
    for name, runs in group_by_setting(results.runs).values():
        compared = summarize(runs)
        tree = describe_tree(runs[0].config)
        parts.append(f"### {name}\n\nThe tree: {tree}. {_verdict(compared)}")
        parts.append(comparison_as_markdown(compared))
    return "\n\n".join(parts) + "\n"


def _verdict(compared: Comparison) -> str:
    return comparison_verdict(compared) if compared.reference is not None and len(compared.rows) > 1 else ""
