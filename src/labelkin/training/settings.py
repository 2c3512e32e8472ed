"""How a model is trained, apart from what it is: everything a run's result depends on besides data, net and objective."""

from dataclasses import dataclass, fields
from typing import Any, Self

from labelkin._checks import InputError, check_choice, check_count, check_number, near, plain

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "step", "linear", "cosine", "exponential")
PRECISIONS = ("32-true", "64-true", "bf16-mixed")
EVALUATIONS = ("eval", "batch-statistics")
REPORTS = ("auto", "last", "best-test")


@dataclass(frozen=True, kw_only=True)
class Settings:
    epochs: int = 10
    batch_size: int = 128  # over all processes
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.9  # of SGD
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: int = 0  # epochs of linear warm-up before the schedule
    gamma: float = 0.1  # the factor of "step" and, a whole run, of "exponential"
    milestones: tuple[int, ...] = ()  # epochs at which "step" multiplies by gamma
    clip: float | None = None  # largest gradient norm
    accumulate: int = 1  # parts that each batch is computed in, to save memory
    balanced: int | None = None  # samples a class in each batch
    augment: tuple[str, ...] = ()
    evaluation: str = "eval"  # or "batch-statistics": measured in training mode, as some published figures were
    report: str = "auto"  # the epoch that counts: best on validation data, else the last; or "last", or "best-test"
    seed: int = 0
    threads: int = 1  # of this process: their number changes the bits
    accelerator: str = "auto"
    devices: int = 1
    strategy: str = "auto"
    precision: str = "32-true"
    compile: bool = False
    workers: int = 0  # that read images ahead

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        for name in ("epochs", "batch_size", "accumulate", "threads", "devices"):
            check_count(name, getattr(self, name))
        for name in ("warmup", "seed", "workers"):
            check_count(name, getattr(self, name), least=0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("evaluation", self.evaluation, EVALUATIONS)
        check_choice("report", self.report, REPORTS)
        check_number("lr", self.lr, low=0, open_low=True)
        check_number("momentum", self.momentum, low=0, high=1)
        check_number("weight_decay", self.weight_decay, low=0)
        check_number("gamma", self.gamma, low=0, high=1, open_low=True)
        if self.clip is not None:
            check_number("clip", self.clip, low=0, open_low=True)
        if self.warmup >= self.epochs:
            raise InputError(f"warmup: expected fewer epochs than the {self.epochs} of the run, got {self.warmup}.")
        object.__setattr__(self, "milestones", tuple(self.milestones))
        object.__setattr__(self, "augment", tuple(self.augment))

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Settings from keywords, an unknown one named with its near matches."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(f"there is no training setting {name!r}.{near(name, known)}")
        return cls(**values)
