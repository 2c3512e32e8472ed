"""Training settings: everything that a run's result depends on besides data, backbone and objective; augmentations by name."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

from labelkin._checks import InputError, check_choice, check_count, check_number, near, plain
from labelkin.data import AUGMENTATIONS, MIXINGS, PRESETS, Augmentation, Mixing

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "step", "linear", "cosine", "exponential")
PRECISIONS = ("32-true", "64-true", "bf16-mixed")
EVALUATIONS = ("eval", "batch-statistics")
REPORTS = ("auto", "last", "best-test")
GRAPHS = ("auto", "on", "off")
PREPROCESSINGS = ("weights", "data")
SAMPLERS = ("random", "balanced")
# Compiling ResNet-18 delays the first step by 26 s on one H200 and saves .5 ms a step (docs/measured.md).
COMPILING_PAYS_FROM = 50_000


class Chosen(NamedTuple):
    """The augmentations of images, in order, and the mixture of samples, if any."""

    steps: list[Augmentation]
    mix: Mixing | None


def augmentations(names: Sequence[str]) -> Chosen:
    """Return the augmentations that names stand for.

    Args:
        names: Names with a number where they take one, such as "flip", "pad-crop:4", "mixup:0.2", or "imagenet" for several.
    """
    single = [part for name in names for part in PRESETS.get(name, (name,))]
    mixing = [name for name in single if is_mixing(name)]
    if len(mixing) > 1:
        raise InputError(f"augment: expected one of mixup and cutmix, got {', '.join(mixing)}; leave one of them out.")
    steps = [augmentation(name) for name in single if name not in mixing]
    return Chosen(steps, augmentation(mixing[0]) if mixing else None)


def is_mixing(name: str) -> bool:
    """Return whether a name stands for a mixture of samples, whose targets are class probabilities."""
    return name.partition(":")[0] in MIXINGS


def augmentation(text: str) -> Any:
    """Return an augmentation by name, with a number where it takes one: "flip", "pad-crop:4", "rotation:15"."""
    name, _, argument = text.partition(":")
    known: dict[str, Any] = {**AUGMENTATIONS, **MIXINGS}
    if name not in known:
        names = [*known, *PRESETS]
        raise InputError(f"augment: expected names from {', '.join(names)}, got {name!r}.{near(name, names)}")
    if not argument:
        return known[name]()
    try:
        number = float(argument)
        return known[name](int(number) if number.is_integer() else number)
    except InputError:
        raise
    except ValueError:
        raise InputError(f"augment: expected a number after {name}:, got {argument!r}.") from None
    except TypeError:
        raise InputError(f"augment: {name} takes no number, got {argument!r}.") from None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Training settings; values are checked on construction.

    Attributes:
        epochs: The number of epochs.
        batch_size: The number of samples in a batch, over all processes.
        optimizer: "sgd", "adam" or "adamw".
        lr: The learning rate.
        momentum: The momentum of SGD.
        nesterov: Whether SGD uses Nesterov momentum.
        weight_decay: The weight decay.
        schedule: How the learning rate changes: "constant", "step", "linear", "cosine" or "exponential".
        warmup: Epochs of linear warm-up before the schedule.
        gamma: The factor of "step", and of "exponential" over the whole run.
        milestones: The epochs at which "step" multiplies the learning rate by `gamma`.
        clip: The largest gradient norm; None does not clip.
        accumulate: The number of parts that each batch is computed in, to save memory.
        balanced: The number of samples of each class in a batch; None draws batches at random.
        sampler: "random" takes each sample once in an epoch; "balanced" takes samples of each class equally often.
        class_weight: Weights of the classes in the loss: "balanced", "effective" (effective numbers of samples), or a .csv or
            .json file of weights by class name; None weighs them equally.
        logit_adjustment: The strength tau of logit adjustment, which adds tau times the logarithm of the class frequencies
            to the logits in training; 0 adds nothing.
        costs: A .csv or .npz file of costs by class name, of the true class (rows) and the answer (columns), for decisions and
            their metrics and for the term `expected_cost` of an objective; None takes the distances in the taxonomy.
        augment: Names of augmentations, with a number where they take one: "flip", "pad-crop:4", "mixup:0.2"; "imagenet" stands
            for several.
        evaluation: "eval", or "batch-statistics" to evaluate in training mode, as some published results did.
        report: The epoch to report: "auto" (the best on validation data, or the last without any), "last" or "best-test".
        seed: The seed of initial weights, batches and augmentation.
        threads: The number of CPU threads; it changes results in the last bits.
        accelerator: Lightning Fabric's accelerator: "auto", "cpu", "cuda" or "mps".
        devices: The number of devices.
        strategy: Lightning Fabric's strategy, such as "ddp".
        precision: "32-true", "64-true" or "bf16-mixed".
        compile: Whether to compile the model: True or "on", False or "off", or "auto", which compiles on a GPU if the run has
            at least 50,000 steps, so that the time saved exceeds the time that compiling takes.
        workers: The number of processes that read image files ahead.
        graph: Whether to capture training steps as CUDA graphs, which gives the same results faster: "auto" (where it is
            possible), "on" (raise an error where it is not) or "off".
        calibration: The share of the training samples, 0 to 0.5, that a run holds out to fit a temperature on; 0 holds out
            none. Data with a validation split use that split instead.
        preprocessing: How images are prepared: "weights" (as the pretrained weights of the backbone expect it), "data" (by the
            mean and deviation of the training data), or None for "weights" if the backbone has pretrained weights.
        freeze: Whether to freeze the weights of a pretrained backbone: its features are computed once and cached, and only the
            head is trained.
        backbone_lr: A factor of the learning rate for the backbone's parameters.
        unfreeze_after: Epochs in which only the head is trained before the backbone is trained as well.
        ema: The decay of an exponential moving average of the weights, which is evaluated and saved instead of the last
            weights; 0 does not average.
        patience: Stop after this many epochs without a better result on the validation split; None trains all epochs.
        dropout: The probability with which features are set to 0 before the head in training.

    Example:
        >>> Settings(epochs=3, optimizer="sgd", lr=0.1).epochs
        3
    """

    epochs: int = 10
    batch_size: int = 128
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: int = 0
    gamma: float = 0.1
    milestones: tuple[int, ...] = ()
    clip: float | None = None
    accumulate: int = 1
    balanced: int | None = None
    sampler: str = "random"
    class_weight: str | None = None
    logit_adjustment: float = 0.0
    costs: str | None = None
    augment: tuple[str, ...] = ()
    evaluation: str = "eval"
    report: str = "auto"
    seed: int = 0
    threads: int = 1
    accelerator: str = "auto"
    devices: int = 1
    strategy: str = "auto"
    precision: str = "32-true"
    compile: bool | str = False
    workers: int = 0
    graph: str = "auto"
    calibration: float = 0.05
    preprocessing: str | None = None
    freeze: bool = False
    backbone_lr: float = 1.0
    unfreeze_after: int = 0
    ema: float = 0.0
    patience: int | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        for name in ("epochs", "batch_size", "accumulate", "threads", "devices"):
            check_count(name, getattr(self, name))
        for name in ("warmup", "seed", "workers", "unfreeze_after"):
            check_count(name, getattr(self, name), least=0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("evaluation", self.evaluation, EVALUATIONS)
        check_choice("report", self.report, REPORTS)
        check_choice("graph", self.graph, GRAPHS)
        if not isinstance(self.compile, bool):
            check_choice("compile", self.compile, GRAPHS)
            if self.compile != "auto":
                object.__setattr__(self, "compile", self.compile == "on")
        if self.preprocessing is not None:
            check_choice("preprocessing", self.preprocessing, PREPROCESSINGS)
        check_number("lr", self.lr, low=0, open_low=True)
        check_number("momentum", self.momentum, low=0, high=1)
        check_number("weight_decay", self.weight_decay, low=0)
        check_number("gamma", self.gamma, low=0, high=1, open_low=True)
        check_number("calibration", self.calibration, low=0, high=0.5)
        check_number("backbone_lr", self.backbone_lr, low=0, open_low=True)
        for name in ("ema", "dropout"):
            check_number(name, getattr(self, name), low=0, high=1)
            if getattr(self, name) == 1:
                raise InputError(f"{name}: expected a number below 1, got 1.")
        if self.patience is not None:
            check_count("patience", self.patience)
        if self.clip is not None:
            check_number("clip", self.clip, low=0, open_low=True)
        if self.warmup >= self.epochs:
            raise InputError(f"warmup: expected less than epochs ({self.epochs}), got {self.warmup}.")
        for name, kind, expected in (("milestones", int, "epochs"), ("augment", str, "names of augmentations")):
            given = getattr(self, name)
            if not isinstance(given, (list, tuple)) or not all(isinstance(value, kind) for value in given):
                raise InputError(f"{name}: expected a list of {expected}, got {given!r}.")
            object.__setattr__(self, name, tuple(given))
        self._check_imbalance()
        for name in ("calibration", "logit_adjustment"):
            object.__setattr__(self, name, float(getattr(self, name)))
        self._check_frozen()

    def _check_frozen(self) -> None:
        """Refuse settings that contradict a frozen backbone."""
        if self.freeze and self.unfreeze_after:
            raise InputError(
                f"unfreeze_after: expected 0 with freeze, which never trains the backbone, got {self.unfreeze_after}; leave "
                "one of them out."
            )
        if self.freeze and self.backbone_lr != 1:
            raise InputError(
                f"backbone_lr: expected 1 with freeze, which never trains the backbone, got {self.backbone_lr:g}; leave one of "
                "them out."
            )
        if self.unfreeze_after >= self.epochs:
            raise InputError(f"unfreeze_after: expected less than epochs ({self.epochs}), got {self.unfreeze_after}.")
        if self.unfreeze_after and self.devices > 1:
            raise InputError(
                "unfreeze_after: expected one device, because several exchange the gradients of all parameters, got "
                f"{self.devices}."
            )
        if self.freeze and self.augment:
            raise InputError(
                f"augment: frozen features are computed once, from unchanged images, got {', '.join(self.augment)}; "
                "leave augment out, or train without freeze."
            )

    def _check_imbalance(self) -> None:
        """Check the settings for classes of different sizes and costs."""
        check_choice("sampler", self.sampler, SAMPLERS)
        if not isinstance(self.class_weight, str | None):
            raise InputError(
                f"class_weight: expected balanced, effective or the name of a file, got {self.class_weight!r}."
            )
        if not isinstance(self.costs, str | None):
            raise InputError(f"costs: expected the name of a file, got {self.costs!r}.")
        if self.sampler == "balanced" and self.balanced is not None:
            raise InputError(
                "sampler: expected 'random' with balanced, which chooses the samples of each batch itself."
            )
        check_number("logit_adjustment", self.logit_adjustment, low=0)

    def compiles(self, steps: int, device_type: str) -> bool:
        """Return whether to compile the model; "auto" depends on nothing that varies from run to run, such as measured times.

        Args:
            steps: The number of steps in an epoch.
            device_type: The type of the device, such as "cuda".
        """
        if self.compile == "auto":
            return device_type == "cuda" and self.epochs * steps >= COMPILING_PAYS_FROM
        return bool(self.compile)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return settings from keywords; an unknown keyword raises `InputError` with similar names."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(f"{name}: there is no training setting of this name.{near(name, known)}")
        return cls(**values)
