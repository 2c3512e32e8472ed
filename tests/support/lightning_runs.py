"""Train the same model by labelkin's own loop and by Lightning, on one process or two: what `test_lightning.py` compares.

Run as a script: `lightning_runs.py LOOP OBJECTIVES PROCESSES FOLDER [HOOK]`, where a hook of the module may be left out. The
objectives, separated by commas, are trained one after the other, so that each process imports Lightning once.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from labelkin import data
from labelkin.data import Dataset, Minibatch
from labelkin.training import Classify, Model, Place, Settings, Trainer, build_model, context_for

OBJECTIVES = ("one-hot", "label-embedding", "adaptive-labels", "retrospection")
OPTIONS: dict[str, dict[str, Any]] = {"retrospection": {"every": 1}, "adaptive-labels": {"preset": "memory"}}
EPOCHS = 3


def digits() -> Dataset:
    return data.load("digits", subset=0.1)  # 143 samples: the last batch is not full


def settings(processes: int) -> Settings:
    return Settings(
        epochs=EPOCHS,
        batch_size=32,
        optimizer="sgd",
        lr=0.05,
        weight_decay=1e-3,
        precision="64-true",
        accelerator="cpu",
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
    )


def model_for(name: str, dataset: Dataset) -> Model:
    return build_model(name, OPTIONS.get(name, {}), "mlp", dataset.shape, context_for(dataset, None), seed=0)


def by_own_loop(name: str, processes: int) -> tuple[Model, dict[str, float], int]:
    """The trained model, the metrics of its last epoch on the test set, and the rank."""
    dataset = digits()
    trainer = Trainer(model_for(name, dataset), Classify(dataset), settings(processes))
    trained = trainer.fit()
    return trained.model, trained.history[-1], trainer.place.rank


class EpochBatches:
    """The batches of labelkin's own loop, as a loader of Lightning."""

    def __init__(self, dataset: Dataset, processes: int) -> None:
        self.task, self.settings = Classify(dataset), settings(processes)
        self.module: Any = None

    def place(self) -> Place:
        return Place(torch.device("cpu"), self.module.global_rank, self.settings.devices)

    def __len__(self) -> int:
        return len(self.task.batches(self.settings, self.place()))

    def __iter__(self) -> Iterator[Minibatch]:
        yield from self.task.batches(self.settings, self.place()).epoch(self.module.current_epoch)

    def in_order(self, part: str) -> Iterator[Minibatch]:
        return self.task._to_evaluate(part, self.place(), mixed=False)


class Held:
    """A part of the data in order, as a loader of Lightning."""

    def __init__(self, batches: EpochBatches, part: str) -> None:
        self.batches, self.part = batches, part

    def __iter__(self) -> Iterator[Minibatch]:
        return self.batches.in_order(self.part)


def by_lightning(name: str, processes: int, left_out: str = "") -> tuple[Model, dict[str, float], int]:
    """The same by Lightning, perhaps without one of the module's hooks."""
    from lightning.pytorch import Trainer as LightningTrainer

    from labelkin.doors.lightning import KinModule

    torch.set_num_threads(1)
    dataset, plan = digits(), settings(processes)
    model, batches = model_for(name, dataset), EpochBatches(dataset, processes)
    optimizer = partial(torch.optim.SGD, lr=plan.lr, momentum=plan.momentum, weight_decay=plan.weight_decay)
    kind: Any = type("Broken", (KinModule,), {left_out: lambda self, *given: None}) if left_out else KinModule
    module = kind(
        model.backbone, model.objective, optimizer=optimizer, refresh_batches=lambda: batches.in_order("train")
    )
    batches.module = module
    trainer = LightningTrainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=processes,
        strategy=plan.strategy,
        precision="64-true",
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, batches, Held(batches, "test"))
    found = {key: float(value) for key, value in trainer.logged_metrics.items()}
    return module.model, found, module.global_rank


if __name__ == "__main__":
    loop, names, processes, folder, *left_out = sys.argv[1:]
    run = by_own_loop if loop == "own" else partial(by_lightning, left_out=left_out[0] if left_out else "")
    for name in names.split(","):
        model, found, rank = run(name, int(processes))
        torch.save({"state": model.state_dict(), "metrics": found}, Path(folder) / f"{loop}.{name}.{rank}")
