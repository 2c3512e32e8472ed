"""Group results by setting (data, network and training), and generate docs/results.md."""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import NamedTuple

from labelkin.comparison import (
    REFERENCE,
    Comparison,
    Row,
    comparison_as_markdown,
    describe_tree,
    group_by_setting,
    summarize,
)
from labelkin.runs import Results

SHOWN_BETTER, SHOWN_WORSE, UNCLEAR, ONE_SEED = "better", "worse", "not significant", "one seed"


class Setting(NamedTuple):
    """A comparison that includes one-hot."""

    name: str  # such as "cifar100, resnet-18, 15 epochs"
    file: str  # the name of the results file
    compared: Comparison
    follow_up: bool = False  # whether it was planned after results on the same data had been seen
    reproduces: bool = False  # whether it repeats a table or figure of a paper, with the paper's settings

    @property
    def reference(self) -> Row:
        """The row of one-hot."""
        return next(row for row in self.compared.rows if row.label == REFERENCE)

    @property
    def noise(self) -> float:
        """The share of training labels that were changed."""
        return float(self.compared.records[REFERENCE][0].config["data_options"].get("label_noise", 0.0))

    @property
    def has_coarse_labels(self) -> bool:
        """Whether some training labels were replaced by the node above the class, which not every objective can use."""
        return bool(self.compared.records[REFERENCE][0].config["data_options"].get("coarse_labels"))

    @property
    def rivals(self) -> list[Row]:
        """The rows of the other objectives."""
        return [row for row in self.compared.rows if row.label != REFERENCE]


def settings_of(found: Iterable[Results]) -> list[Setting]:
    """Return the settings in which one-hot and at least one other objective were trained."""
    settings = []
    for results in found:
        for name, runs in group_by_setting(results.runs).values():
            compared = summarize(runs, reference=REFERENCE)
            if compared.reference is not None and len(compared.rows) > 1:
                settings.append(
                    Setting(_named(name, compared), results.name, compared, results.follow_up, bool(results.recipes))
                )
    return settings


def _named(name: str, compared: Comparison) -> str:
    config = next(iter(compared.records.values()))[0].config
    options, tree = config["data_options"], config["taxonomy"]
    facts = {
        "encoder": options.get("encoder"),
        "label noise": options.get("label_noise"),
        "coarse labels": options.get("coarse_labels"),
        "validation": options.get("validation_fraction"),
        "tree": tree,
    }
    return ", ".join([name, *(f"{what} {value}" for what, value in facts.items() if value)])


def outcome(row: Row) -> str:
    """Return the verdict on the accuracy of a row against one-hot's."""
    if isnan(row.difference_low):
        return ONE_SEED
    if row.difference_low > 0:
        return SHOWN_BETTER
    return SHOWN_WORSE if row.difference_high < 0 else UNCLEAR


def points(row: Row) -> str:
    """Return the difference from one-hot in percentage points, such as `"+0.42 [+0.10, +0.74]"`; one seed has no interval."""
    mean = f"{_signed(100 * row.difference)}"
    if isnan(row.difference_low):
        return mean
    return f"{mean} [{_signed(100 * row.difference_low)}, {_signed(100 * row.difference_high)}]"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


def by_objective(settings: Sequence[Setting]) -> dict[str, list[tuple[Setting, Row]]]:
    """Group the rows of all settings by objective, with any options."""
    found: dict[str, list[tuple[Setting, Row]]] = {}
    for setting in settings:
        for row in setting.rivals:
            found.setdefault(row.objective, []).append((setting, row))
    return found


INTRODUCTION = """# Results

`make docs` generates this page from `results/*.json`.

- ± is the standard deviation over seeds.
- "cost" is the mean tree distance from the true class to the decision of least expected distance (CRM), and "cost against
  one-hot" its difference in percent. "costs are" says what they rest on; those that are uncalibrated and over seeds only, of
  earlier runs, decide nothing.
- "against one-hot" is the mean difference in percentage points of accuracy between runs with the same seed, with its 95 %
  interval: over new seeds and new test samples where the outcomes on each sample are stored, else over seeds alone.
- "severity" is the mean height of the lowest common ancestor of truth and prediction, over the mistakes. "AHD@5" is the mean
  tree distance of the five best classes to the truth. Lower is better; compare both only on the same tree.
- "decided" columns are of calibrated decisions, AHD@5 and AHD@20 with their distance above the least that the tree allows.
  "CRM" columns are of the same decisions without calibration.
- "structure" is the correlation of label distances with tree distances (001). If an objective learns no label vectors, the
  class means of the scores are used.
- "front" marks objectives for which no other is at least as good in both accuracy and severity.
- "seconds" is the training time of a run while other runs used the same machine, so it does not measure speed.
"""


def results_page(found: Sequence[Results]) -> str:
    """Return the text of docs/results.md."""
    return "\n".join([INTRODUCTION, *(_section(results) for results in found)]).rstrip("\n") + "\n"


def _section(results: Results) -> str:
    parts = [f"## {results.name}", f"{results.machine}, {results.date}."]
    if results.command:
        parts.append(f"```sh\n{results.command}\n```")
    parts += [f"Limitations: {sentence}" for sentence in results.missing]
    for name, runs in group_by_setting(results.runs).values():
        compared = summarize(runs)
        tree = describe_tree(runs[0].config)
        parts.append(f"### {name}\n\nTree: {tree}. {_verdict(compared)}")
        parts.append(comparison_as_markdown(compared))
    return "\n\n".join(parts) + "\n"


def _verdict(compared: Comparison) -> str:
    """Return the first sentence of the verdict and its details."""
    if compared.reference is None or len(compared.rows) < 2:
        return ""
    return " ".join([str(compared.verdict), *compared.verdict.details])
