"""Decision rules on one model: mean cost of argmax, CRM, calibrated CRM, level temperatures and hierarchical ensembles.

    python benchmarks/decisions.py [--seeds 5] [--samples 2000]

Each seed draws training and held-out images of Fashion-MNIST; logistic regression learns the classes, and another one their
parents. Costs are heights in the tree `fashion-mnist`. Prints Markdown; differences are paired by seed, with Student's 95 %
intervals.
"""

import argparse
import warnings

import numpy as np
import torch
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import avg_pool2d

from labelkin import Taxonomy, decide
from labelkin.data import load
from labelkin.structure import load_tree

BASE = "CRM, temperature"


def probs_of(features: Tensor, target: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Fit logistic regression on the first part, and return the probabilities of the others."""
    train, *others = parts
    model = LogisticRegression(max_iter=200).fit(features[train].numpy(), target[train].numpy())
    return [torch.from_numpy(model.predict_proba(features[part].numpy())).double() for part in others]


def scale(held_out: Tensor, target: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    floor = torch.finfo(torch.float64).tiny
    fitted = decide.Temperature().fit(held_out.clamp_min(floor).log(), target)
    scaled = (fitted.apply(part.clamp_min(floor).log()).softmax(-1) for part in (held_out, test))
    return next(scaled), next(scaled)


def rankings(tree: Taxonomy, features: Tensor, target: Tensor, parts: list[Tensor]) -> dict[str, Tensor]:
    """Return the order of the five best classes of the test samples, by rule."""
    true = target[parts[1]]
    held_out, test = probs_of(features, target, parts)
    _, column = np.unique(tree.parents[tree.leaves], return_inverse=True)
    coarse = probs_of(features, torch.from_numpy(column)[target], parts)
    calibrated, calibrated_test = scale(held_out, true, test)
    both, both_test = (decide.hierarchical_ensemble(p, c, tree) for p, c in zip((held_out, test), coarse, strict=True))
    _, ensemble = scale(both, true, both_test)
    levels = decide.LevelTemperatures().fit(calibrated, true, tree)
    return {
        "argmax": test.argsort(dim=-1, descending=True, stable=True)[:, :5],
        "CRM": decide.least_cost_top_k(test, tree, 5),
        BASE: decide.least_cost_top_k(calibrated_test, tree, 5),
        "CRM, level temperatures": levels.least_cost(calibrated_test, tree, k=5),
        "HiE, argmax": both_test.argsort(dim=-1, descending=True, stable=True)[:, :5],
        "HiE, CRM, temperature": decide.least_cost_top_k(ensemble, tree, 5),
    }


def measured(tree: Taxonomy, order: Tensor, target: Tensor) -> list[float]:
    far = tree.distance("height", target.numpy()[:, None], order.numpy())
    return [100 * float((order[:, 0] == target).double().mean()), float(far[:, 0].mean()), float(far.mean())]


def difference(values: np.ndarray) -> str:
    reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():+.4f} ± {reach:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2000, help="images to train on, and as many to calibrate on")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = load("fashion-mnist", download=False)
    tree = load_tree("fashion-mnist").reorder(data.classes)
    inputs = torch.cat([data.train.inputs, data.test.inputs])
    features = avg_pool2d(inputs.float() / 255, 2).flatten(1)
    target = torch.cat([data.train.targets, data.test.targets])
    tested = torch.arange(len(data.train.targets), len(target))
    found: dict[str, list[list[float]]] = {}
    for seed in range(asked.seeds):
        drawn = torch.randperm(len(data.train.targets), generator=torch.Generator().manual_seed(seed))
        parts = [drawn[: asked.samples], drawn[asked.samples : 2 * asked.samples], tested]
        for rule, order in rankings(tree, features, target, parts).items():
            found.setdefault(rule, []).append(measured(tree, order, target[tested]))
    table = {rule: np.array(values) for rule, values in found.items()}
    print("| rule | accuracy % | mean cost | distance@5 | mean cost, against calibrated CRM |\n|" + " --- |" * 5)
    for rule, values in table.items():
        cells = [f"{values[:, k].mean():.{places}f}" for k, places in enumerate((2, 4, 4))]
        against = "" if rule == BASE else difference(values[:, 1] - table[BASE][:, 1])
        print(f"| {rule} | {' | '.join(cells)} | {against} |")


if __name__ == "__main__":
    main()
