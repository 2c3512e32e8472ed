"""Coverage of the audit's 95 % intervals of a saving where costly mistakes are rare.

    python benchmarks/audit_intervals.py [--draws 1000] [--samples 100,300,1000,5000]

Six classes with calibrated probabilities, and the same probabilities made overconfident (logits times 1.5). Each draw takes a
few of 200,000 samples, and compares the class of least expected cost with the most probable class. "linear" intervals are those
of the delta method with the variance of the costs in the draw. "audit" intervals are Fieller's, with that variance or the one
that the probabilities expect, whichever is larger, as in `labelkin audit`.

Prints a Markdown table with the coverage of both in percent, and in parentheses the percentage of draws for which the audit
says that too few samples cost anything for an interval.
"""

import argparse
from math import isnan, nan

import numpy as np
import torch
from torch import Tensor

from labelkin import decide
from labelkin.audit._expected_moments import expected_moments
from labelkin.audit._paired import Paired, Z

CLASSES, POPULATION = 6, 200_000
OVERCONFIDENT = 1.5


def cost_tables() -> dict[str, Tensor]:
    """Return costs of 1 for a mistake, with a few costly ones."""
    plain = 1 - torch.eye(CLASSES, dtype=torch.float64)
    answer, truth, pair = plain.clone(), plain.clone(), plain.clone()
    answer[:, 0] *= 10
    truth[0] *= 20
    pair[0, 1] = 50
    return {"one wrong answer costs 10": answer, "one missed class costs 20": truth, "one confusion costs 50": pair}


def population(distance: float) -> tuple[Tensor, Tensor]:
    """Return logits (n, K) whose softmax is the true distribution of the classes, and classes (n,) drawn from it."""
    random = np.random.default_rng(0)
    target = random.integers(CLASSES, size=POPULATION)
    shift = random.normal(size=(POPULATION, CLASSES))
    shift[np.arange(POPULATION), target] += distance
    return torch.from_numpy(distance * shift), torch.from_numpy(target)


def linear(before: Tensor, after: Tensor) -> tuple[float, float]:
    """Return the interval of the saved share by the delta method; NaN if nothing cost anything."""
    if not before.any():
        return nan, nan
    ratio = after.sum() / before.sum()
    reach = Z * float((after - ratio * before).var() / len(before)) ** 0.5 / float(before.mean())
    return 1 - float(ratio) - reach, 1 - float(ratio) + reach


def coverage(logits: Tensor, target: Tensor, costs: Tensor, samples: int, draws: int) -> str:
    """Return the coverage of linear and of audit intervals, and how often the audit gives none, in percent."""
    probs = logits.softmax(-1)
    best, least = probs.argmax(-1), decide.least_cost(probs, costs)
    before, after = costs[target, best], costs[target, least]
    true = 1 - float(after.mean() / before.mean())
    random = np.random.default_rng(1)
    hits, none = [0, 0], 0
    for _ in range(draws):
        rows = torch.from_numpy(random.integers(POPULATION, size=samples))
        low, high = linear(before[rows], after[rows])
        hits[0] += low <= true <= high
        moments = expected_moments(probs[rows], best[rows], least[rows], None, costs)
        found = Paired().add(before[rows], after[rows], expected=moments).saving()
        none += isnan(found.low)
        hits[1] += isnan(found.low) or found.low <= true <= found.high
    return "{:.0f}, {:.0f} ({:.0f})".format(*(100 * count / draws for count in (*hits, none)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--samples", default="100,300,1000,5000")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    sizes = [int(size) for size in asked.samples.split(",")]
    print("| costs | accuracy % | probabilities |" + "".join(f" {size:,} samples |" for size in sizes))
    print("|" + " --- |" * (3 + len(sizes)))
    for distance in (2.0, 3.0):
        logits, target = population(distance)
        accuracy = 100 * float((logits.argmax(-1) == target).double().mean())
        for kind, scale in (("calibrated", 1.0), ("overconfident", OVERCONFIDENT)):
            for name, costs in cost_tables().items():
                print(f"| {name} | {accuracy:.0f} | {kind} |", end="", flush=True)
                for size in sizes:
                    print(f" {coverage(logits * scale, target, costs, size, asked.draws)} |", end="", flush=True)
                print()


if __name__ == "__main__":
    main()
