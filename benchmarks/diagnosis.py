"""`labelkin.analysis.diagnose` on planted causes and a healthy control, with a small network on digits per seed.

    python benchmarks/diagnosis.py [--seeds 20] [--first 0]      table of planted and diagnosed causes, and ranges of the values
    python benchmarks/diagnosis.py --doses --first 100           effect of small weights and weak cues

Prints Markdown. The thresholds were chosen with seeds 100 and up, before seeds 0 to 19 were run.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import torch
from planted import HXE, TREES, Make, diagnosed, halves, on_tree, smoothing
from small_runs import CLASSES, Case, parts, plain, trained
from torch import Tensor

from labelkin import Taxonomy
from labelkin.analysis import CAUSES, Diagnosis, diagnose
from labelkin.objectives import Hierarchical

HEALTHY = "healthy"


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(map(str, line)) for line in (headings, *rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def span(values: Iterable[float]) -> str:
    found = [value for value in values if value == value]
    return f"{short(min(found))} to {short(max(found))}" if found else ""


def short(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "0" if abs(value) < 1e-12 else f"{value:.2g}"


def confusion(found: dict[str, list[Diagnosis]]) -> str:
    names = (*CAUSES, HEALTHY)
    rows = []
    for cause in names:
        counts = Counter(diagnosis.cause for diagnosis in found[cause])
        rows.append([cause, *(counts[name] for name in names)])
    return table(["planted \\ diagnosed", *names], rows)


def figures(found: dict[str, list[Diagnosis]]) -> str:
    rows = []
    for cause, all_of in found.items():
        judged = [d.mistakes if d.reference is None else d.reference for d in all_of]
        levels = (d.gradient.weakest_level for d in all_of if d.gradient.weakest_level is not None)
        columns = [(d.spread.possible for d in all_of), (d.gradient.kin_share for d in all_of), levels]
        rows.append([cause, *map(span, columns), span(m.headroom for m in judged), span(m.mistakes for m in judged)])
    return table(["planted", "possible", "kin share", "weakest level", "headroom", "mistakes"], rows)


def causes(seeds: range) -> None:
    both = {cause: [diagnosed(cause, seed) for seed in seeds] for cause in (*CAUSES, HEALTHY)}
    beside, alone = ({cause: [pair[i] for pair in all_of] for cause, all_of in both.items()} for i in (0, 1))
    for title, found in (("With a reference model", beside), ("Without a reference model", alone)):
        print(f"{title}, seeds {seeds.start} to {seeds.stop - 1}:\n\n{confusion(found)}\n\n{figures(found)}\n")


CUES = (0.9, 0.95, 0.98, 0.99, 1.0)
DOSES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
LADDERS: dict[str, Callable[[float], Make]] = {
    "semantic-smoothing sigma": smoothing,
    "HXE alpha": lambda a: on_tree(HXE, alpha=a),
}


def placed(log_probs: Tensor, target: Tensor, tree: Taxonomy) -> float:
    """Return the mean distance of the probability of wrong classes, divided by that of equal probabilities."""
    distance = torch.from_numpy(tree.distance("height"))[target]
    probs = log_probs.double().exp()
    wrong = 1 - probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return float((probs * distance).sum() / (wrong * distance.sum(-1) / (len(CLASSES) - 1)).sum())


def doses(seeds: range) -> None:
    """Print how far the probability of wrong classes moves toward related classes, relative to another initialization."""
    kin: dict[tuple[str, float], list[float]] = {}
    moved: dict[tuple[str, float], list[float]] = {}
    chance: list[float] = []
    for seed in seeds:
        tree = TREES[seed % len(TREES)](seed)
        part = parts(Case(tree, plain), seed)
        target = part.held_out[1]
        base = placed(trained(plain, part, seed)[1], target, tree)
        chance.append(placed(trained(plain, part, seed + 1000)[1], target, tree) - base)
        for name, ladder in LADDERS.items():
            for dose in DOSES:
                objective, log_probs = trained(partial(ladder(dose), tree), part, seed)
                kin.setdefault((name, dose), []).append(
                    diagnose(objective, log_probs, target, taxonomy=tree).gradient.kin_share
                )
                moved.setdefault((name, dose), []).append(base - placed(log_probs, target, tree))
    noise = statistics.pstdev(chance, mu=0)
    rows = [
        [name, dose, span(kin[name, dose]), f"{statistics.mean(all_of):.4f}", f"{statistics.mean(all_of) / noise:.2f}"]
        for (name, dose), all_of in moved.items()
    ]
    print(f"Another initialization changes this distance by {noise:.4f} (root mean square, {len(seeds)} seeds).\n")
    moved_to, relative = "moved toward related classes", "divided by the effect of initialization"
    print(table(["objective", "dose", "kin share", moved_to, relative], rows), end="\n\n")


def cues(seeds: range) -> None:
    """Print how many images must show their group for the diagnosis "tree respected already"."""
    rows = []
    for share in CUES:
        found = []
        for seed in seeds:
            tree = halves(seed)
            part = parts(Case(tree, plain, share), seed)
            objective, _ = trained(partial(on_tree(Hierarchical), tree), part, seed)
            _, reference = trained(plain, part, seed)
            found.append(diagnose(objective, reference, part.held_out[1], reference=reference))
        named = sum(diagnosis.cause == "tree respected already" for diagnosis in found)
        rows.append([f"{share:.0%}", span(d.mistakes.headroom for d in found), f"{named} of {len(found)}"])
    print(table(["images that show their group", "headroom", "tree respected already"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--doses", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(given.first, given.first + given.seeds)
    if given.doses:
        doses(seeds)
        cues(seeds)
    else:
        causes(seeds)


if __name__ == "__main__":
    main()
