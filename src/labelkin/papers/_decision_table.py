"""Generate the decision table at the top of docs/choosing.md: what to do in which situation, and the evidence for it."""

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean

from labelkin.comparison import REFERENCE
from labelkin.papers._format import markdown_table
from labelkin.papers._leaderboard import deciding_settings, percent, pooled_costs
from labelkin.papers._needs import EPOCHS, NEEDS, TREE, Compared, of_total
from labelkin.papers._settings import SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome

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
