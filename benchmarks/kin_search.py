"""Compare variants of kin on held-out parts of the training texts of several sets, without their test texts.

    python benchmarks/kin_search.py --seeds 3 --workers 2 --output results/search/kin-text-head.json
    python benchmarks/kin_search.py --seeds 3 --workers 8 --network plain --output results/search/kin-texts.json
    python benchmarks/kin_search.py --seeds 3 --workers 1 --variants means retrospection "retrospection, ancestors" \
        "kin and retrospection" "kin and retrospection, tau 2" --output results/search/kin-retrospection.json

A sixth of the training texts is decided, a twentieth fits the temperature, and a head with one hidden layer trains on the
rest. The network is that of the plans, or a plain one without batch normalization. Decisions are those of least expected
tree distance. Each seed has its own parts.
"""

import argparse
import json
import statistics
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin import Kin, LabelSmoothing, OneHot, Retrospection
from labelkin.data import Dataset, load
from labelkin.models import build

SETS = {"naics2012": 20, "stdlib": 6, "clinc150": 20, "trec": 20}  # name: epochs
PLANNED = {"stdlib": "text-head-256"}  # the network of the set's plan
OTHERWISE = "text-head-512"
VARIANTS: dict[str, dict[str, Any]] = {
    "one-hot": {},
    "label smoothing": {},
    "gradient": {"learning": "gradient"},
    "means": {},
    "means, tau 1": {"tau": 1.0},
    "means, tau 1.5": {"tau": 1.5},
    "means, tau 3": {"tau": 3.0},
    "means, start .5": {"start": 0.5},
    "means, ancestors .05": {"ancestors": 0.05},
    "means, ancestors .2": {"ancestors": 0.2},
    "means, momentum .97": {"momentum": 0.97},
    "means, tau 3, ancestors .2": {"tau": 3.0, "ancestors": 0.2},
    "means, alpha 1": {"alpha": 1.0},
    "retrospection": {},
    "retrospection, ancestors": {"ancestors": 0.1},
    "kin and retrospection": {},
    "kin and retrospection, tau 2": {},
}
TOGETHER = {"kin and retrospection": 5.0, "kin and retrospection, tau 2": 2.0}  # the temperature of earlier predictions
BATCH, WIDTH, RATE = 128, 512, 2e-3
TEMPERATURES = torch.exp(torch.linspace(-2, 1.5, 200))
Job = tuple[str, str, int, str]  # set, variant, seed, network


@cache
def read(name: str) -> Dataset:
    """Read a set; texts other than functions are encoded by MiniLM."""
    return load(name) if name == "stdlib" else load(name, encoder="minilm")


class Together:
    """Kin and retrospection: `(1 - b) kin + b tau^2 KL(p || softmax(z1 / tau))`.

    p is the prediction for the sample one epoch earlier, at temperature tau. As in retrospection, b grows from 0 to .9.
    """

    def __init__(self, head: nn.Module, samples: int, tau: float) -> None:
        self.head, self.tau = head, tau
        self.earlier = torch.zeros(samples, head.num_classes)

    def loss(self, features: Tensor, target: Tensor, rows: Tensor, share: float) -> Tensor:
        outputs = self.head(features)
        loss = self.head.loss(outputs, target)
        if share:
            log_probs = F.log_softmax(outputs.z1 / self.tau, -1)
            moved = F.kl_div(log_probs, self.earlier[rows], reduction="none").sum(-1).sum() / len(rows)
            loss = (1 - share) * loss + share * self.tau**2 * moved
        self.earlier[rows] = torch.softmax(outputs.z1.detach() / self.tau, -1)
        return loss


def measure(job: Job) -> tuple[Job, dict[str, float]]:
    """Train one variant with one seed, and measure its decisions."""
    torch.set_num_threads(1)
    name, variant, seed, network = job
    data = read(name)
    assert data.taxonomy is not None
    inputs, targets = torch.as_tensor(data.train.inputs).half().float(), torch.as_tensor(data.train.targets)
    distance = torch.as_tensor(data.taxonomy.distance(), dtype=torch.float32)
    n, fitting = len(inputs), max(200, len(inputs) // 20)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1000 + seed))
    decided, fitted, trained = order.split([n // 6, fitting, n - n // 6 - fitting])
    torch.manual_seed(seed)
    if network == "plain":
        width = WIDTH
        body: nn.Module = nn.Sequential(nn.Linear(inputs.shape[1], width), nn.ReLU(), nn.Dropout(0.2))
    else:
        planned = build(PLANNED.get(name, OTHERWISE), tuple(inputs.shape[1:]))
        body, width = planned, planned.features
    if variant == "one-hot":
        head: nn.Module = OneHot(data.classes, features=width)
    elif variant == "label smoothing":
        head = LabelSmoothing(data.classes, features=width)
    elif variant.startswith("retrospection"):
        tree = {"taxonomy": data.taxonomy} if VARIANTS[variant] else {}
        head = Retrospection(data.classes, samples=n, features=width, **tree, **VARIANTS[variant])
    else:
        head = Kin(data.taxonomy, features=width, **VARIANTS[variant])
    together = Together(head, n, TOGETHER[variant]) if variant in TOGETHER else None
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=RATE)
    steps = SETS[name] * -(-len(trained) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(SETS[name]):
        head.begin_epoch(epoch, SETS[name])
        for rows in trained[torch.randperm(len(trained))].split(BATCH):
            optimizer.zero_grad()
            features = body(inputs[rows])
            if together is None:
                head(features, targets[rows], index=rows).backward()
            else:
                together.loss(features, targets[rows], rows, 0.9 * epoch / SETS[name]).backward()
            optimizer.step()
            schedule.step()
    body.eval(), head.eval()
    with torch.no_grad():

        def logits(rows: Tensor) -> Tensor:
            outputs = head(body(inputs[rows]))
            return outputs.z1 if isinstance(outputs, tuple) else outputs

        known = logits(fitted)
        losses = torch.stack([F.cross_entropy(known / t, targets[fitted]) for t in TEMPERATURES])
        temperature = TEMPERATURES[losses.argmin()]
        scores, truth = logits(decided) / temperature, targets[decided]
        answers = (torch.softmax(scores, -1) @ distance).argmin(-1)
        return job, {
            "cost": distance[truth, answers].mean().item(),
            "accuracy": (answers == truth).float().mean().item(),
            "log_loss": F.cross_entropy(scores, truth).item(),
            "temperature": temperature.item(),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--network", choices=("planned", "plain"), default="planned")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    variants = dict.fromkeys(["one-hot", *given.variants])
    jobs = [
        (name, variant, seed, given.network) for seed in range(given.seeds) for name in SETS for variant in variants
    ]
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    with get_context("spawn").Pool(given.workers) as pool:
        for (name, variant, seed, _), figures in pool.imap_unordered(measure, jobs):
            found.setdefault(name, {}).setdefault(variant, {})[seed] = figures
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    for name, by_variant in found.items():
        for variant, figures in by_variant.items():
            change = [100 * (figures[s]["cost"] / by_variant["one-hot"][s]["cost"] - 1) for s in figures]
            print(f"{name:10} {variant:28} n = {len(change)}  cost {statistics.mean(change):+6.2f} %")


if __name__ == "__main__":
    main()
