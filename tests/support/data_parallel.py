"""A few epochs of training on one process or several: what `test_ddp.py` compares. Run as a script, this is one process.

Thirteen samples are dealt anew to the processes in every epoch: shards are unequal, class 3 is on one process only, class 5
is there once, and the last process pads its shard with two samples of weight 0 that hold garbage.
"""

import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from labelkin import Model, Objective
from labelkin.objectives import _label_embedding as label_embedding
from labelkin.objectives import _label_embedding_chunked as chunks
from support.cases import CASES, Case
from support.steps import snapshot
from support.worlds import CLASSES, default_dtype, generator

TARGET = torch.tensor([3, 3, 0, 1, 2, 5, 0, 4, 4, 1, 0, 2, 0])
SHARDS = {1: [13], 2: [9, 4], 3: [6, 5, 2]}
FIRST = [0, 9, 4]  # an epoch's samples start with this one, counted backwards
EPOCHS = len(FIRST)
COMPILED = ("one-hot-plain", "adaptive-labels-all", "label-embedding-paper")
UNWEIGHTED = (
    "one-hot-plain",
    "label-embedding-paper",
)  # once more without class weights, whose mean has another divisor


def dealt(epoch: int, rank: int, ranks: int) -> Tensor:
    """The samples that a process has in an epoch."""
    order = torch.arange(len(TARGET)).roll(FIRST[epoch])
    return order.split(SHARDS[ranks])[rank]


def shard(objective: Objective, epoch: int, rank: int, ranks: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The inputs of a process and what its loss is given."""
    rows = dealt(epoch, rank, ranks)
    inputs = torch.randn(len(TARGET), 3, generator=generator(1), dtype=torch.float64)[rows]
    weight = 0.5 + torch.rand(len(TARGET), generator=generator(2), dtype=torch.float64)[rows]
    batch = {"target": TARGET[rows], "weight": weight, "index": rows}
    if objective.takes_nodes:  # every third sample is known down to an inner node alone
        batch["node"] = torch.where(rows % 3 == 0, 1 + rows % 2, torch.full_like(rows, -1))
    if ranks == 1 or rank < ranks - 1:
        return inputs, batch
    padding = {"target": -100, "weight": 0, "index": -1, "node": -1}
    batch = {name: torch.cat([part, part.new_full((2,), padding[name])]) for name, part in batch.items()}
    return torch.cat([inputs, torch.full((2, 3), 7.0, dtype=torch.float64)]), batch


def train(
    case: Case, *, rank: int = 0, ranks: int = 1, compiled: bool = False, class_weight: bool = True
) -> dict[str, Any]:
    """Losses and gradients of every step, and the state at the end."""
    with default_dtype(torch.float64):
        torch.manual_seed(0)
        backbone = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
    model = Model(backbone, case.make(features=4, class_weight=class_weight))
    objective = model.objective
    if compiled:
        torch._dynamo.reset()
        model.compile(fullgraph=True, backend="aot_eager")
    wrapped = model if ranks == 1 else DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found: dict[str, Any] = {"losses": [], "gradients": []}
    for epoch in range(EPOCHS):
        objective.begin_epoch(epoch, EPOCHS)
        for _ in range(2):
            inputs, batch = shard(objective, epoch, rank, ranks)
            optimizer.zero_grad()
            loss = wrapped(inputs, **batch)
            loss.backward()
            found["losses"].append(loss.detach())
            found["gradients"].append({name: p.grad.clone() for name, p in model.named_parameters()})
            optimizer.step()
    objective.begin_epoch(EPOCHS - 1, EPOCHS)  # processes exchange what they recorded
    if "refresh" in objective.needs:
        refresh(model, rank, ranks)
    return {**found, "state": snapshot(model)}


def refresh(model: Model, rank: int, ranks: int) -> None:
    rows = dealt(0, rank, ranks)
    inputs, _ = shard(model.objective, 0, rank, ranks)
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model.objective(model.backbone(x[None])) for x in inputs[: len(rows)]])
    model.objective.refresh([(outputs[:1], TARGET[rows[:1]]), (outputs[1:], TARGET[rows[1:]])])


def work(rank: int, ranks: int, folder: Path) -> None:
    """All cases, each in a group of its own, so that one that fails does not hold up the next."""
    jobs: list[tuple[str, Case, dict[str, bool]]] = [(str(case), case, {}) for case in CASES]
    jobs += [(f"{case}-compiled", case, {"compiled": True}) for case in CASES if str(case) in COMPILED]
    jobs += [(f"{case}-unweighted", case, {"class_weight": False}) for case in CASES if str(case) in UNWEIGHTED]
    for name, case, variant in jobs:
        meeting = f"file://{folder}/{name}.store"
        dist.init_process_group(
            "gloo", init_method=meeting, rank=rank, world_size=ranks, timeout=timedelta(seconds=1200)
        )
        try:
            result: Any = train(case, rank=rank, ranks=ranks, **variant)
        except Exception:
            result = traceback.format_exc()
        torch.save(result, folder / f"{name}.{rank}")
        dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    chunks.CHUNK = label_embedding.CHUNK = 4 * CLASSES  # four samples at a time, where one process takes all at once
    work(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
