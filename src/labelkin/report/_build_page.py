"""Build the page of a comparison."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from labelkin._checks import counted
from labelkin.comparison import Comparison, decides_on_cost, rows_of_decisions
from labelkin.report import figures
from labelkin.report._class_sizes import class_size_panel
from labelkin.report._inspect_run import RunData, RunInspector
from labelkin.report._leaderboard import leaderboard, ranked
from labelkin.report._learned import Projection
from labelkin.report._page_model import Page, Panel, Subject, Table
from labelkin.report._provenance import any_record, provenance_sections
from labelkin.report.figures._learning import Curve, mean_curves
from labelkin.runs import DataCache, located


def build_page(
    comparison: Comparison,
    *,
    projection: Projection = "mds",
    cache: DataCache | None = None,
    problems: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Page:
    """Return the page of a comparison; see `write_report` for the arguments."""
    comparison = _ranked(comparison)
    result, missing = comparison.verdict, [*problems, *_missing(comparison)]
    subjects: list[Subject] = []
    data, cache = None, DataCache() if cache is None else cache
    for label, records in comparison.records.items():
        say(f"analyzing {label}")
        record = min(records, key=lambda record: record.seed)
        data = data or RunData(located(record.config, record.path), cache)
        inspector = RunInspector(record, data, projection=projection)
        if (subject := inspector.subject(label)) is not None:
            subjects.append(subject)
        else:
            missing.append(f"{label} cannot be analyzed: {inspector.reasons['model']}")
    labels = [subject.label for subject in subjects]
    return Page(
        title=f"{comparison.data}: {counted(len(comparison.rows), 'objective')} compared",
        context=_context(comparison),
        verdict=result,
        leaderboard=leaderboard(comparison, labels) if comparison.rows else None,
        overview=(*_overview(comparison), *class_size_panel(comparison, data)),
        subjects=tuple(subjects),
        chosen=first_shown(comparison, labels),
        missing=tuple(missing),
        sections=provenance_sections(comparison),
    )


def _ranked(comparison: Comparison) -> Comparison:
    """Sort the rows, best first."""
    rows = ranked(comparison)
    return comparison._replace(rows=rows, records={row.label: comparison.records[row.label] for row in rows})


def _context(comparison: Comparison) -> tuple[str, ...]:
    record = any_record(comparison)
    seeds = sorted({record.seed for runs in comparison.records.values() for record in runs})
    return (
        comparison.data,
        record.backbone,
        counted(len(comparison.rows), "objective"),
        counted(len(seeds), "seed"),
        counted(record.settings["epochs"], "epoch"),
        *(counted(size, "test sample") for size in sorted({r.test_samples for r in comparison.rows if r.test_samples})),
    )


def _missing(comparison: Comparison) -> list[str]:
    """List what is missing on the page."""
    missing = [
        f"The run of {record.label} with seed {record.seed} has not finished and is left out; resume it with: "
        f"labelkin train --resume {shlex.quote(str(record.path))}"
        for record in comparison.unfinished
    ]
    if comparison.rows and comparison.reference is None:
        missing.append("No run of the reference has finished, so there are no differences.")
    elif any(row.runs == 1 for row in comparison.rows):
        missing.append("Objectives with one seed have no standard deviation and no confidence interval.")
    if (folds := any_record(comparison).config["data_options"].get("folds")) is not None:
        missing.append(f"The details of each objective are those of its first model of {folds}, one per fold.")
    missing += [f"Left out, because folds are missing: {words}." for words in comparison.incomplete]
    if any_record(comparison).config["tree"] == "built":
        missing.append(f"No taxonomy was passed; the tree for the severity was {comparison.tree.partition(',')[0]}.")
    return missing


def first_shown(comparison: Comparison, labels: Sequence[str]) -> int:
    """Return the position of the objective that the verdict says to use: the winner or, if none is better, the reference."""
    kept = comparison.reference if comparison.verdict.kind == "tie" else None
    candidates = (comparison.verdict.winner, kept, *(row.label for row in comparison.rows))
    wanted = [label for label in candidates if label in labels]
    return labels.index(wanted[0]) if wanted else 0


def _overview(comparison: Comparison) -> tuple[Panel, ...]:
    if not comparison.rows:
        return ()
    curves = mean_curves(comparison)
    reference = (
        ""
        if comparison.reference is None
        else (
            f" The dashed line is the best accuracy of {comparison.reference}; a star marks the epoch at which another "
            "objective reaches it."
        )
    )
    return (
        Panel(
            "pareto",
            "Accuracy against severity",
            f"{'Decisions by the least expected cost; up' if decides_on_cost(comparison) else 'Up'} and to the right is "
            "better. The line is the Pareto front: no other objective is at least as good in both.",
            {"": figures.accuracy_severity(comparison)},
            _rows(
                comparison._replace(rows=rows_of_decisions(comparison.rows))
                if decides_on_cost(comparison)
                else comparison,
                ("accuracy", "accuracy_spread", "severity", "severity_spread", "on_front"),
            ),
        ),
        Panel(
            "curves",
            "Learning curves",
            f"Mean test accuracy over seeds; the band is one standard deviation.{reference}",
            _curve_views(curves, comparison.reference),
            _curve_table(curves),
            missing="" if curves else "The runs have no metrics per epoch.",
            views="Show",
        ),
        Panel(
            "decisions",
            "Effect of cost-based decisions (CRM)",
            "From the most probable class (open) to the class of least expected tree distance (filled); needs no training.",
            {"": figures.decisions(comparison)},
            _rows(comparison, _decision_fields(comparison)),
        ),
    )


def _decision_fields(comparison: Comparison) -> tuple[str, ...]:
    """Return the fields of the table about decisions: calibrated ones if the runs have them."""
    before = ("accuracy", "severity", "ahd5")
    if any(row.decided_accuracy == row.decided_accuracy for row in comparison.rows):
        return (*before, "argmax_cost", "decided_accuracy", "decided_severity", "decided_ahd5", "cost", "temperature")
    return (*before, "crm_accuracy", "crm_severity", "crm_ahd5")


def _curve_views(curves: Sequence[Curve], reference: str | None) -> dict[str, Any]:
    """Return two views: the last two thirds of the epochs enlarged, and all epochs."""
    if not curves:
        return {}
    whole = figures.learning_curves(curves, reference=reference)
    late = [100 * value for curve in curves for value in curve.mean[len(curve.mean) // 3 :]]
    room = 0.08 * (max(late) - min(late)) or 1.0
    near = figures.learning_curves(curves, reference=reference)
    near.update_yaxes(range=[min(late) - room, max(late) + 2 * room])
    return {"last epochs, enlarged": near, "all epochs": whole}


def _rows(comparison: Comparison, fields: Sequence[str]) -> Table:
    rows = [(row.label, *(_plain(getattr(row, field)) for field in fields)) for row in comparison.rows]
    return Table(("objective", *(field.replace("_", " ") for field in fields)), rows)


def _plain(value: float | bool) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value != value else round(value, 4)


def _curve_table(curves: Sequence[Curve]) -> Table:
    longest = max((len(curve.epochs) for curve in curves), default=0)
    rows = [
        (epoch + 1, *(round(100 * curve.mean[epoch], 2) if epoch < len(curve.mean) else None for curve in curves))
        for epoch in range(longest)
    ]
    passed = tuple("–" if curve.reached is None else curve.reached for curve in curves)
    return Table(("epoch", *(curve.label for curve in curves)), [*rows, ("reaches the reference", *passed)])
