"""Generate docs/choosing.md: which objective to choose for which problem, according to the results.

The page starts with a decision table: what to do in which situation, and the evidence.
"""

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean

from labelkin._checks import counted
from labelkin.comparison import REFERENCE, Row
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._leaderboard import deciding_settings, percent, pooled_costs
from labelkin.papers._needs import ACCURACY, EPOCHS, NEEDS, TREE, Compared, accuracy, by_need, linked, of_total
from labelkin.papers._settings import SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome, settings_of
from labelkin.runs import Results

STAY = f"stay with `{REFERENCE}`"


def decision_table(settings: Sequence[Setting]) -> str:
    """Return the section with the decision table."""
    rows = by_objective(settings)
    lines = [_trained_model(settings), _tree(settings)]
    for need in NEEDS:
        if need.title != TREE:
            found = need.results(rows)
            lines.append((need.title, *(_fast(found) if need.title == EPOCHS else _accurate(found))))
    return f"## What to do\n\n{markdown_table(('situation', 'do this', 'evidence'), lines)}\n"


def _trained_model(settings: Sequence[Setting]) -> tuple[str, str, str]:
    """Say what a better decision rule does to a model that is already trained."""
    changes = [
        setting.reference.cost / setting.reference.argmax_cost - 1
        for setting in deciding_settings(settings)
        if setting.reference.argmax_cost > 0
    ]
    action = "fit a temperature on held-out data and decide by the least expected cost (`labelkin.decide`)"
    if not changes:
        return "I have a trained model and a tree", action, "no calibrated results yet"
    lower = sum(change < 0 for change in changes)
    mean_change = percent(fmean(changes))
    evidence = (
        f"cost of {REFERENCE}'s decisions {mean_change} % against argmax, lower in {of_total(lower, len(changes))}"
    )
    return "I have a trained model and a tree", action, evidence


def _tree(settings: Sequence[Setting]) -> tuple[str, str, str]:
    """Recommend to train the objective with the least pooled cost if it is shown to be lower over data sets.

    If it is not, but is shown lower in more settings than higher, recommend to try it.
    """
    ranked = pooled_costs(settings)
    situation = "I train a model and have a tree"
    if not ranked:
        return situation, f"{STAY} and decide by the least expected cost", "no calibrated results yet"
    most = max(one.sets for one in ranked)
    shown = [one for one in ranked if one.high < 0 and one.sets == most]
    best = (shown or ranked)[0]
    evidence = (
        f"`{best.label}`: cost {percent(best.change, best.low, best.high)} % against {REFERENCE} over "
        f"{best.sets} data set{'s' if best.sets != 1 else ''}, {100 * best.accuracy:+.2f} points of accuracy, shown lower in "
        f"{of_total(best.lower, best.lower + best.undecided + best.higher)} and higher in {best.higher}; "
        "[leaderboard](leaderboard.md)"
    )
    if shown:
        return situation, f"train `{best.label}`", evidence
    return situation, f"try `{best.label}`" if best.lower > best.higher else STAY, evidence


def _accurate(found: Mapping[str, Compared]) -> tuple[str, str]:
    """Recommend the objective that is most often shown to be more accurate, and never or less often less accurate."""
    scores = {name: _score(rows) for name, rows in found.items() if rows}
    if not scores:
        return STAY, "not measured"
    name = max(scores, key=lambda name: (scores[name][0] - scores[name][1], scores[name][0]))
    better, worse, total = scores[name]
    evidence = f"`{name}` is significantly more accurate in {of_total(better, total)} and less in {worse}"
    return (f"try `{name}`" if better > worse else STAY), evidence


def _score(rows: Compared) -> tuple[int, int, int]:
    outcomes = [outcome(row) for _, row in rows]
    return outcomes.count(SHOWN_BETTER), outcomes.count(SHOWN_WORSE), len(outcomes)


def _fast(found: Mapping[str, Compared]) -> tuple[str, str]:
    """Recommend the objective that most often reaches one-hot's best accuracy."""
    reached = {
        name: ([row.epochs_saved for _, row in rows if not isnan(row.epochs_saved)], len(rows))
        for name, rows in found.items()
        if rows
    }
    if not any(saved for saved, _ in reached.values()):
        return STAY, "not measured"
    name = max(reached, key=lambda name: len(reached[name][0]) / reached[name][1])
    saved, total = reached[name]
    evidence = (
        f"`{name}` reaches {REFERENCE}'s best accuracy in {of_total(len(saved), total)}, and saves "
        f"{100 * fmean(saved):.0f} % of the epochs there"
    )
    return (f"try `{name}`" if 2 * len(saved) > total else STAY), evidence


INTRODUCTION = """# Which objective to choose

What to do, what each objective showed, and what may serve a need, from every measured comparison. The
[leaderboard](leaderboard.md) ranks objectives by the cost of their decisions, and [all tables](results.md) has every number.
`make docs` generates this page from `results/*.json`.
"""
READING = """A comparison is one data set, network and training, against one-hot cross entropy with the same seeds. "More
accurate" and "less accurate" count the comparisons whose 95 % interval excludes zero, with the range of these differences in
percentage points of test accuracy. One seed shows nothing. "Cost of decisions lower" counts mean costs below one-hot's, both
decided by the least expected tree distance (CRM). "Epochs saved" is a mean over the comparisons in which an objective reaches
one-hot's best accuracy, with their number; [measured](measured.md) has the time and the memory of training.
"""


def choosing_page(found: Sequence[Results]) -> str:
    """Return the text of docs/choosing.md."""
    settings = settings_of(found)
    if not settings:
        return f"{INTRODUCTION}\n## No results yet\n\nThere are no results that include one-hot in `results/`.\n"
    return "\n".join(
        [INTRODUCTION, decision_table(settings), _objectives(settings), by_need(settings), _mistakes(settings)]
    )


def _objectives(settings: Sequence[Setting]) -> str:
    """Return one table with a line for each objective: how often it is shown to differ, and the epochs that it saves."""
    found = sorted(by_objective(settings).items())
    rows = [(linked(name), *accuracy(compared), _saved(compared)) for name, compared in found]
    return f"## What each objective showed\n\n{READING}\n{markdown_table(('objective', *ACCURACY, 'epochs saved'), rows)}\n"


def _mistakes(settings: Sequence[Setting]) -> str:
    """Say what the choice of an objective does to the five best answers and to calibration."""
    return f"## Lists of answers and calibration\n\n{_beyond(settings)}\n"


def _beyond(settings: Sequence[Setting]) -> str:
    """Say how often the AHD@5 of an objective is below that of one-hot, with the same rule for both."""
    compared = [
        (row.crm_ahd5 < setting.reference.crm_ahd5, row.ahd5 < setting.reference.ahd5)
        for setting in settings
        for row in setting.rivals
        if not any(map(isnan, (row.ahd5, row.crm_ahd5, setting.reference.ahd5, setting.reference.crm_ahd5)))
    ]
    if not compared:
        return "No results have AHD@5 both with and without CRM."
    with_crm, without = sum(crm for crm, _ in compared), sum(plain for _, plain in compared)
    return (
        "AHD@5 is the mean tree distance of the five best classes to the truth. It is below that of one-hot in "
        f"{without} of {counted(len(compared), 'comparison')}; with CRM for both, which is uncalibrated here, in {with_crm}. "
        f"{_calibrated(settings)}"
    )


def _calibrated(settings: Sequence[Setting]) -> str:
    known = [
        (row.objective, row.ece - setting.reference.ece)
        for setting in settings
        for row in setting.rivals
        if not isnan(row.ece) and not isnan(setting.reference.ece)
    ]
    means = {name: fmean(gap for other, gap in known if other == name) for name in dict.fromkeys(n for n, _ in known)}
    if not means:
        return ""
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return (
        f"Compared with one-hot, the expected calibration error is lowest with `{best}` ({means[best]:+.3f} on average over "
        f"its settings) and highest with `{worst}` ({means[worst]:+.3f})."
    )


def _saved(found: Sequence[tuple[Setting, Row]]) -> str:
    reached = [100 * row.epochs_saved for _, row in found if not isnan(row.epochs_saved)]
    return f"{fmean(reached):.0f} % in {len(reached)}" if reached else UNDEFINED
