"""Fallback with a guarantee on digits: coverage over random splits, and what is left of it when the test data shift.

    python benchmarks/guarantee.py [--splits 1000] [--calibration 200] [--alphas 0.05,0.1] [--confidence 0.9]

A logistic regression learns 60 digits. In each split, the other 1,737 are divided into samples for the temperature, samples
for the threshold, and test samples. The tree groups digits by shape, as in docs/audit.md. With a confidence, only test data
from the same source are measured. Prints Markdown.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import beta
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from labelkin import decide
from labelkin.decide._guarantee import rank
from labelkin.structure import Taxonomy

TRAINED, FALSE_ALARMS = 60, 0.01
ADJUSTED = "other class shares, adjusted"
TREE = {
    "loop": {"one": ["0", "6", "9"], "two": ["8"]},
    "open": {"curved": ["2", "3", "5"], "straight": ["1", "4", "7"]},
}


class Samples(NamedTuple):
    logits: Tensor
    target: Tensor

    def part(self, where: Tensor) -> "Samples":
        return Samples(self.logits[where], self.target[where])


class Outcome(NamedTuple):
    right: float
    classes: float
    nothing: float
    per_subtree: list[float]  # right answers by true top-level subtree
    warned: bool


def held_out(tree: Taxonomy, noise: float) -> tuple[Samples, Samples]:
    """Return the samples that the model has not seen, and the same with noise on the pixels (standard deviation of 16)."""
    inputs, target = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(target))
    seen, rest = order[:TRAINED], order[TRAINED:]
    model = LogisticRegression(max_iter=1000).fit(inputs[seen], target[seen])
    columns = [int(name) for name in tree.classes]
    place = torch.tensor([columns.index(digit) for digit in range(10)])
    noisy = np.clip(inputs[rest] + noise * np.random.default_rng(1).normal(size=inputs[rest].shape), 0, 16)
    scores = [torch.from_numpy(model.decision_function(given)[:, columns]) for given in (inputs[rest], noisy)]
    clean, shifted = (Samples(logits, place[torch.from_numpy(target[rest])]) for logits in scores)
    return clean, shifted


def other_shares(samples: Samples, tree: Taxonomy) -> Tensor:
    """Return sample weights that make the last top-level subtree ten times rarer."""
    top = torch.from_numpy(tree.level(1))[samples.target]
    return torch.where(top == top.max(), 0.1, 1.0)


def measured(
    calibration: Samples,
    temperature: decide.Temperature,
    test: Samples,
    tree: Taxonomy,
    safe: decide.GuaranteedFallback,
    shares: tuple[Tensor, Tensor] | None = None,  # of the test samples, and the former ones
) -> Outcome:
    before, after = (temperature.apply(part.logits).softmax(-1) for part in (calibration, test))
    ratios = None
    if shares is not None:
        before, after = (decide.adjust_shares(probs, *shares) for probs in (before, after))
        ratios = shares[0] / shares[1]
    safe.fit(decide.node_probs(before, tree), calibration.target, tree, share_ratios=ratios)
    answer = safe.apply(decide.node_probs(after, tree), tree).numpy()
    right = tree.lca(answer, tree.leaves[test.target.numpy()]) == answer
    top = tree.level(1)[test.target.numpy()]
    parts = [float(right[top == node].mean()) for node in np.unique(tree.level(1)) if (top == node).any()]
    shift = decide.check_shift(before, after, false_alarms=FALSE_ALARMS)
    return Outcome(
        float(right.mean()), float(tree.is_leaf[answer].mean()), float((answer == 0).mean()), parts, shift.shifted
    )


def simulated(tree: Taxonomy, safe: decide.GuaranteedFallback, kind: str, splits: int, size: int) -> list[Outcome]:
    clean, noisy = held_out(tree, noise=5.0)
    generator = torch.Generator().manual_seed(0)
    outcomes = []
    for _ in range(splits):
        order = torch.randperm(len(clean.target), generator=generator)
        fitted, calibration, rest = order[:size], order[size : 2 * size], order[2 * size :]
        shares = None
        if kind.startswith("other class shares"):
            weights = other_shares(clean.part(rest), tree)
            rest = rest[torch.multinomial(weights, len(rest) // 2, generator=generator)]
        test = (noisy if kind == "noise" else clean).part(rest)
        temperature = decide.Temperature().fit(clean.logits[fitted], clean.target[fitted])
        if kind == ADJUSTED:
            trained = temperature.apply(clean.logits[fitted]).softmax(-1).mean(0)
            new = torch.bincount(clean.target, other_shares(clean, tree), minlength=len(trained))
            shares = new / new.sum(), trained
        outcomes.append(measured(clean.part(calibration), temperature, test, tree, safe, shares))
    return outcomes


def line(kind: str, by: str, alpha: float, outcomes: list[Outcome]) -> str:
    right = np.array([outcome.right for outcome in outcomes])
    low, high = np.quantile(right, [0.05, 0.95])
    subtrees = np.array([outcome.per_subtree for outcome in outcomes]).mean(0)
    shares = [np.mean([getattr(outcome, name) for outcome in outcomes]) for name in ("classes", "nothing", "warned")]
    error = right.std(ddof=1) / np.sqrt(len(right))
    numbers = [
        f"{100 * right.mean():.2f} ± {100 * error:.2f}",
        f"{100 * low:.1f} to {100 * high:.1f}",
        f"{100 * np.mean(right < 1 - alpha):.0f}",
        ", ".join(f"{100 * share:.1f}" for share in subtrees),
        *(f"{100 * share:.0f}" for share in (shares[0], 1 - shares[0] - shares[1], shares[1], shares[2])),
    ]
    return f"| {kind} | {by} | {100 * (1 - alpha):g} | {' | '.join(numbers)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--calibration", type=int, default=200)
    parser.add_argument("--alphas", default="0.05,0.1")
    parser.add_argument("--confidence", type=float)
    asked = parser.parse_args()
    tree, alphas = Taxonomy.from_nested(TREE), [float(text) for text in asked.alphas.split(",")]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for alpha in alphas if asked.confidence is None else ():
        theory = beta(rank(asked.calibration, alpha), asked.calibration + 1 - rank(asked.calibration, alpha))
        low, high = theory.ppf([0.05, 0.95])
        print(
            f"In theory, 90 % of splits with {asked.calibration} calibration samples have {100 * low:.1f} to {100 * high:.1f} "
            f"% for the promise of {100 * (1 - alpha):g} %, before the error of the test set."
        )
    print(
        "\n| test data | by | promise % | right, mean ± standard error | 90 % of splits | splits below % | by true subtree "
        "| class % | ancestor % | no answer % | warned % |\n|" + " --- |" * 11,
        flush=True,
    )
    cases = [("same source", by, alpha) for alpha in alphas for by in ("all", "predicted", "true")]
    shifted = ("other class shares", ADJUSTED, "noise") if asked.confidence is None else ()
    cases += [(kind, by, alphas[-1]) for kind in shifted for by in ("all", "predicted", "true")]
    for kind, by, alpha in cases:
        safe = decide.GuaranteedFallback(alpha, by, confidence=asked.confidence)
        print(line(kind, by, alpha, simulated(tree, safe, kind, asked.splits, asked.calibration)), flush=True)


if __name__ == "__main__":
    main()
