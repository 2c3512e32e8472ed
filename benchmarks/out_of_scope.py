"""Answers to questions that belong to no class: fallback with a guarantee on the out-of-scope queries of CLINC150.

    labelkin compare results/plans/clinc150-out-of-scope.yaml --out data/runs/out-of-scope
    python benchmarks/out_of_scope.py data/runs/out-of-scope

CLINC150 has 1,000 test queries that belong to none of its 150 intents. The guarantee of `decide.GuaranteedFallback` does not
cover them: it holds for queries like those of the validation split, which fits the temperature and the threshold. This command
measures which share of the queries gets an intent, only a domain, or no answer, in scope and out of scope. For an out-of-scope
query, only "no answer" is right. It prints Markdown, with means and standard deviations over seeds.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin.data import load, out_of_scope, restored
from labelkin.decide import node_probs
from labelkin.runs import Predictor, Store, load_run
from labelkin.structure import Taxonomy

COVERAGES = (0.95, 0.97, 0.98, 0.99)


class Shares(NamedTuple):
    """Shares of queries in percent."""

    right: float  # in scope: a true node or no answer
    intent: float
    domain: float
    none: float
    out_intent: float
    out_domain: float
    out_none: float


def kinds(nodes: Tensor, tree: Taxonomy) -> tuple[float, float, float]:
    """Return the shares of answers that are a class, a node between the classes and the root, and the root."""
    leaf = np.isin(nodes.numpy(), tree.leaves)
    root = nodes.numpy() == 0
    return 100 * leaf.mean(), 100 * (~leaf & ~root).mean(), 100 * root.mean()


def shares(run: Predictor, coverage: float, inputs: Tensor, target: Tensor, foreign: Tensor) -> Shares:
    """Answer the test queries and the out-of-scope queries by one rule of a run."""
    rule = run.rule("fallback", coverage=coverage)
    inside, outside = (run.predict(part, decide=rule).nodes for part in (inputs, foreign))
    assert inside is not None
    assert outside is not None
    truth = torch.nn.functional.one_hot(target, len(run.classes)).double()
    right = 100 * node_probs(truth, run.taxonomy).gather(1, inside.unsqueeze(1)).mean().item()
    return Shares(right, *kinds(inside, run.taxonomy), *kinds(outside, run.taxonomy))


def separation(run: Predictor, inputs: Tensor, foreign: Tensor) -> float:
    """Return the probability that an in-scope query has a more probable class than an out-of-scope one (AUROC)."""
    inside, outside = (
        run.predict(part, decide="argmax").all_probabilities.amax(-1).numpy()  # type: ignore[union-attr]
        for part in (inputs, foreign)
    )
    order = np.sort(outside)
    lower, upper = np.searchsorted(order, inside, "left"), np.searchsorted(order, inside, "right")
    return float(50 * (lower + upper).mean() / len(order))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="the folder of the runs")
    store = parser.parse_args().store
    found: dict[str, list[Predictor]] = {}
    for record in sorted(Store(store).records(), key=lambda record: record.seed):
        if record.finished:
            found.setdefault(record.label, []).append(load_run(record.path))
    data = load("clinc150", encoder="minilm")
    first = next(iter(found.values()))[0]
    assert first.samples.encoder is not None
    inputs, target = torch.as_tensor(data.test.inputs), torch.as_tensor(data.test.targets)
    foreign = restored(first.samples.encoder).encode(out_of_scope())
    print(f"{len(inputs):,} queries in scope, {len(foreign):,} out of scope.\n")
    print(
        "| objective | n | promise % | right or unanswered % | intent, domain, no answer: in scope % | out of scope % |\n|"
        + " --- |" * 6
    )
    for label, runs in found.items():
        for coverage in COVERAGES:
            one = np.array([shares(run, coverage, inputs, target, foreign) for run in runs])
            mean, spread = one.mean(0), one.std(0, ddof=1) if len(one) > 1 else np.zeros(one.shape[1])
            cell = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True)]
            print(
                f"| {label} | {len(runs)} | {100 * coverage:g} | {cell[0]} | {', '.join(cell[1:4])} | {', '.join(cell[4:])} |"
            )
    print("\nThe most probable class of an in-scope query is more probable than that of an out-of-scope one in:\n")
    for label, runs in found.items():
        values = [separation(run, inputs, foreign) for run in runs]
        print(f"- {label}: {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} % of the pairs")


if __name__ == "__main__":
    main()
