"""Option groups of the commands that train: method, data and training.

A field has the name and the default of the argument that it sets. A test compares them with
`labelkin.training.Settings` and `labelkin.data.load`, which need torch and are therefore not imported here.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from labelkin.cli._class_options import ClassOptions
from labelkin.cli._completion import complete_backbones
from labelkin.cli._fine_tuning_options import FineTuningOptions
from labelkin.cli._option_groups import assignments, column_names, grids, whole_numbers, words

DATA = (
    "A name from `labelkin data list`, a folder of images, a .npz, .npy, .csv, .tsv, .jsonl or .parquet file, or sentence "
    "pairs (FILE:FILE, FOLDER:en-de or multi30k:en-de)"
)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Network, class tree and options of the objectives."""

    backbone: Annotated[
        str | None,
        Option(
            help="Network: a name from `labelkin backbones`, timm:NAME or hf:NAME, where NAME may be a folder, "
            "or timm-scratch:NAME for random weights. Default: depends on the data.",
            rich_help_panel="Method",
            autocompletion=complete_backbones,
        ),
    ] = None
    taxonomy: Annotated[
        str | None,
        Option(
            help="Class tree: a file, 'wordnet' or a built-in tree. Default: the data's own tree, or one built from them.",
            metavar="FILE|NAME",
            rich_help_panel="Method",
        ),
    ] = None
    assigned: Annotated[
        list[str] | None,
        Option(
            "--set",
            help="Set an option of an objective, such as label-embedding.tau=3. Repeat for more. See `labelkin objectives`.",
            metavar="OBJECTIVE.OPTION=VALUE",
            rich_help_panel="Method",
        ),
    ] = None

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        return assignments(self.assigned or [])


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Option values to choose among, for commands that train an objective more than once."""

    gridded: Annotated[
        list[str] | None,
        Option(
            "--grid",
            help="Try these values of an option and choose the best on validation data. Repeat for more options.",
            metavar="OBJECTIVE.OPTION=A,B,C",
            rich_help_panel="Method",
        ),
    ] = None

    @property
    def grids(self) -> dict[str, dict[str, list[Any]]]:
        return grids(self.gridded or [])


# Arguments of `labelkin.data.load` that have another name on the command line, where --seed is that of the training.
ARGUMENTS = {"split_seed": "seed"}


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Options of `labelkin.data.load`."""

    data_dir: Annotated[
        Path | None,
        Option(help="Folder to search first for built-in data sets, and to download to.", rich_help_panel="Data"),
    ] = None
    validation_fraction: Annotated[
        float | None,
        Option(
            "--validation",
            help="Fraction of the training set used to choose the best epoch. Default: none; the last epoch is reported.",
            metavar="FRACTION",
            rich_help_panel="Data",
        ),
    ] = None
    test_fraction: Annotated[
        float | None,
        Option(
            "--test",
            help="Fraction used for testing if the data have no test set. Default: 0.2 (sentence pairs: 0.1).",
            metavar="FRACTION",
            rich_help_panel="Data",
        ),
    ] = None
    split_seed: Annotated[
        int,
        Option(
            help="Seed of the random splits, of --subset, --coarse-labels and --label-noise.",
            metavar="N",
            rich_help_panel="Data",
        ),
    ] = 0
    folds: Annotated[
        int | None,
        Option(
            help="Cross-validate with this many folds if the data have no test set: each sample is tested once.",
            metavar="K",
            rich_help_panel="Data",
        ),
    ] = None
    subset: Annotated[
        float | None,
        Option(help="Fraction of each class's training samples to use.", metavar="FRACTION", rich_help_panel="Data"),
    ] = None
    label_noise: Annotated[
        float,
        Option(help="Fraction of training labels to swap between paired classes.", rich_help_panel="Data"),
    ] = 0.0
    coarse_labels: Annotated[
        float,
        Option(
            help="Fraction of training labels to replace by the node above the class, to measure the benefit of --partial.",
            metavar="FRACTION",
            rich_help_panel="Data",
        ),
    ] = 0.0
    classes: Annotated[str | None, Option(help="Use only these classes: a,b,c.", rich_help_panel="Data")] = None
    label: Annotated[
        str | None,
        Option(
            help="Label column of a table, or several, coarse to fine: family,genus,species. Default: label.",
            rich_help_panel="Data",
        ),
    ] = None
    partial: Annotated[
        Literal["use", "drop", "none"] | None,
        Option(
            help="What to do with samples labeled with a node above the classes. use: train on them; objectives that cannot "
            "are refused. drop: leave them out for those objectives. none: leave them out for all. Default: use.",
            rich_help_panel="Data",
        ),
    ] = None
    features: Annotated[
        str | None,
        Option(help="Feature columns of a table: a,b,c. Default: all other columns.", rich_help_panel="Data"),
    ] = None
    image: Annotated[str | None, Option(help="Column of image paths in a table.", rich_help_panel="Data")] = None
    encoding: Annotated[
        str | None,
        Option(help="Encoding of a .csv or .tsv file. Default: detected; UTF-8 for texts.", rich_help_panel="Data"),
    ] = None
    text: Annotated[str | None, Option(help="Text column of a table.", rich_help_panel="Data")] = None
    encoder: Annotated[
        str | None,
        Option(
            help="Text encoder: hashed-tfidf, hashed-code, hashed-characters, minilm, hf:NAME, st:NAME or a model folder. "
            "Default: hashed-tfidf.",
            rich_help_panel="Data",
        ),
    ] = None
    remove: Annotated[
        str | None,
        Option(
            help="Parts to remove from 20-newsgroups posts: headers,footers,quotes or none. Default: all three.",
            metavar="A,B",
            rich_help_panel="Data",
        ),
    ] = None
    labels: Annotated[Path | None, Option(help="File with the labels of a .npy file.", rich_help_panel="Data")] = None
    image_size: Annotated[
        int | None,
        Option(
            help="Resize images to this side length. Default: their common size, otherwise 64.", rich_help_panel="Data"
        ),
    ] = None
    on_error: Annotated[
        Literal["stop", "skip"] | None,
        Option(help="On an unreadable image: stop or skip. Default: stop.", rich_help_panel="Data"),
    ] = None

    def chosen(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as values for config.json."""
        given = {**asdict(self), "classes": words(self.classes), "features": words(self.features)}
        given |= {"remove": words(self.remove), "label": column_names(self.label)}
        given |= {name: str(given[name]) for name in ("data_dir", "labels") if given[name] is not None}
        chosen = {field.name: given[field.name] for field in fields(self) if given[field.name] != field.default}
        return {ARGUMENTS.get(name, name): value for name, value in chosen.items()}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(FineTuningOptions, ClassOptions):
    """Options of `labelkin.training.Settings`."""

    epochs: Annotated[int, Option(help="Number of epochs.", rich_help_panel="Training")] = 10
    batch_size: Annotated[int, Option(help="Batch size over all processes.", rich_help_panel="Training")] = 128
    optimizer: Annotated[str, Option(help="Optimizer.", metavar="sgd|adam|adamw", rich_help_panel="Training")] = "adam"
    lr: Annotated[float, Option(help="Learning rate.", rich_help_panel="Training")] = 1e-3
    momentum: Annotated[float, Option(help="Momentum of SGD.", rich_help_panel="Training")] = 0.9
    nesterov: Annotated[
        bool, Option("--nesterov", help="Use Nesterov momentum with SGD.", rich_help_panel="Training")
    ] = False
    weight_decay: Annotated[float, Option(help="Weight decay.", rich_help_panel="Training")] = 0.0
    schedule: Annotated[
        str,
        Option(
            help="Learning rate schedule.",
            metavar="constant|step|linear|cosine|exponential",
            rich_help_panel="Training",
        ),
    ] = "constant"
    warmup: Annotated[int, Option(help="Number of epochs of linear warm-up.", rich_help_panel="Training")] = 0
    gamma: Annotated[
        float, Option(help="Factor of the step and exponential schedules.", rich_help_panel="Training")
    ] = 0.1
    milestones: Annotated[
        str, Option(help="Epochs at which the step schedule multiplies by gamma: 40,80.", rich_help_panel="Training")
    ] = ""
    clip: Annotated[float | None, Option(help="Clip the gradient norm to this value.", rich_help_panel="Training")] = (
        None
    )
    accumulate: Annotated[
        int, Option(help="Compute each batch in this many parts, to save memory.", rich_help_panel="Training")
    ] = 1
    balanced: Annotated[
        int | None, Option(help="Number of samples per class in each batch.", rich_help_panel="Training")
    ] = None
    augment: Annotated[
        str,
        Option(
            help="Augmentations: imagenet, flip, vertical-flip, pad-crop:4, shift:0.1, rotation:15, random-resized-crop:0.08, "
            "color-jitter:0.4, rand-augment:9, random-erasing:0.25, mixup:0.2, cutmix:1.",
            metavar="A,B",
            rich_help_panel="Training",
        ),
    ] = ""
    evaluation: Annotated[
        str,
        Option(
            help="With batch-statistics, evaluate in training mode, as some papers did.",
            metavar="eval|batch-statistics",
            rich_help_panel="Training",
        ),
    ] = "eval"
    report: Annotated[
        str,
        Option(
            "--reported-epoch",
            help="Epoch to report. auto: best on validation data if there are any, otherwise the last.",
            metavar="auto|last|best-test",
            rich_help_panel="Training",
        ),
    ] = "auto"
    calibration: Annotated[
        float,
        Option(
            help="Share of the training samples held out for the temperature; 0 holds out none. A validation set is used "
            "instead if there is one.",
            metavar="SHARE",
            rich_help_panel="Training",
        ),
    ] = 0.05
    threads: Annotated[
        int,
        Option(help="CPU threads per process. The number affects rounding.", rich_help_panel="Machine"),
    ] = 1
    accelerator: Annotated[str, Option(help="Device type.", metavar="auto|cpu|gpu", rich_help_panel="Machine")] = "auto"
    devices: Annotated[int, Option(help="Number of devices, with one process each.", rich_help_panel="Machine")] = 1
    strategy: Annotated[str, Option(help="Strategy for several devices, such as ddp.", rich_help_panel="Machine")] = (
        "auto"
    )
    precision: Annotated[
        str, Option(help="Floating-point precision.", metavar="32-true|64-true|bf16-mixed", rich_help_panel="Machine")
    ] = "32-true"
    compile: Annotated[
        str,
        Option(
            help="Compile the model with torch.compile. auto: on a GPU, if the run has 50,000 steps or more.",
            metavar="auto|on|off",
            rich_help_panel="Machine",
        ),
    ] = "off"
    workers: Annotated[int, Option(help="Number of processes that load images.", rich_help_panel="Machine")] = 0
    graph: Annotated[
        str,
        Option(
            help="Capture training steps as CUDA graphs: the same results, faster. auto: where it is possible.",
            metavar="auto|on|off",
            rich_help_panel="Machine",
        ),
    ] = "auto"

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `labelkin.training.Settings`."""
        milestones = tuple(whole_numbers("milestones", self.milestones))
        return {**asdict(self), "milestones": milestones, "augment": tuple(words(self.augment) or ())}
