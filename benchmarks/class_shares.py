"""What new class shares cost, and what adjusting the probabilities to them saves, on real texts.

    python benchmarks/class_shares.py [--sets 20-newsgroups,stdlib,languages] [--draws 20]

Logistic regression on hashed words or parts of words; a fifth of the training texts fits the temperature and measures the
former shares. Each draw takes 2,000 test texts with replacement, in other class shares:

- "same": as in the test set.
- "drawn": shares from a flat Dirichlet distribution.
- "rare": half of the classes, at random, become ten times rarer.

Prints Markdown: the mean cost of the decisions of least expected tree distance, and its change in percent (± standard
deviation over draws) if the shares are known, and if they are estimated from the new texts (`decide.estimate_shares`), without
a prior and with the default one.
"""

import argparse
import warnings

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from labelkin import decide
from labelkin.data import load

SETS = {"20-newsgroups": "hashed-tfidf", "stdlib": None, "languages": None}  # encoders; None: that of the data set
TEXTS = 2000


def new_weights(kind: str, classes: int, random: np.random.Generator) -> np.ndarray:
    if kind == "same":
        return np.ones(classes)
    return random.dirichlet(np.ones(classes)) if kind == "drawn" else np.where(random.random(classes) < 0.5, 0.1, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--draws", type=int, default=20)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| data set | classes | shares | cost | known % | estimated, prior 0 % | estimated, prior 10 % |\n|"
        + " --- |" * 7
    )
    for name in asked.sets.split(","):
        encoder = SETS[name]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*features are all zero")
            data = load(name, download=False, **({} if encoder is None else {"encoder": encoder}))
        x, y = csr_array(data.train.inputs.numpy()), data.train.targets.numpy()
        x_test, y_test = csr_array(data.test.inputs.numpy()), data.test.targets.numpy()
        order = np.random.default_rng(0).permutation(len(y))
        held_out, fitted = order[: len(y) // 5], order[len(y) // 5 :]
        model = LogisticRegression(C=3, tol=1e-3, max_iter=100).fit(x[fitted], y[fitted])
        logits = torch.from_numpy(model.decision_function(x[held_out]))
        temperature = decide.Temperature().fit(logits, torch.from_numpy(y[held_out]))
        trained = temperature.apply(logits).softmax(-1).mean(0)
        every = temperature.apply(torch.from_numpy(model.decision_function(x_test))).softmax(-1)
        classes, distance = len(data.classes), data.taxonomy.distance("height")
        for kind in ("same", "drawn", "rare"):
            costs = []
            for seed in range(asked.draws):
                random = np.random.default_rng(seed)
                weights = new_weights(kind, classes, random)
                rows = random.choice(len(y_test), TEXTS, p=weights[y_test] / weights[y_test].sum())
                probs, true = every[rows], y_test[rows]
                known = torch.from_numpy(np.bincount(y_test, weights=weights[y_test], minlength=classes))
                shares = (trained, known, *(decide.estimate_shares(probs, trained, prior=prior) for prior in (0, 10)))
                given = (decide.adjust_shares(probs, new, trained) for new in shares)
                costs.append([distance[true, decide.least_cost(part, data.taxonomy).numpy()].mean() for part in given])
            change = 100 * (np.array(costs)[:, 1:] / np.array(costs)[:, :1] - 1)
            shown = " | ".join(
                f"{mean:+.1f} ± {spread:.1f}"
                for mean, spread in zip(change.mean(0), change.std(0, ddof=1), strict=True)
            )
            print(f"| {name} | {classes} | {kind} | {np.mean(costs, axis=0)[0]:.3f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
