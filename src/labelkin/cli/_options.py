"""Options of the commands that train: what is trained, on what, and how.

A field is called as the argument that it becomes, and has its default: a test compares them with
`labelkin.training.Settings` and `labelkin.data.load`, which are not imported here because they need torch.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from labelkin._checks import InputError
from labelkin.cli._option_groups import assignments, grids, seconds, whole_numbers, words

DATA = (
    "A set of `labelkin data list`, a folder of images, a .npz, .npy, .csv, .jsonl or .parquet file, or sentence pairs as "
    "FILE:FILE, FOLDER:en-de or multi30k:en-de"
)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    backbone: Annotated[
        str | None,
        Option(help="Network: a name, timm:NAME or hf:NAME. Default: by the data.", rich_help_panel="Method"),
    ] = None
    taxonomy: Annotated[
        str | None,
        Option(
            help="Tree of the classes: a file, 'wordnet', or a shipped one. Default: the data's own, else built from it.",
            metavar="FILE|NAME",
            rich_help_panel="Method",
        ),
    ] = None
    assigned: Annotated[
        list[str] | None,
        Option(
            "--set",
            help="An option of an objective, as label-embedding.tau=3; again for more. `labelkin objectives` lists them.",
            metavar="OBJECTIVE.OPTION=VALUE",
            rich_help_panel="Method",
        ),
    ] = None

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        return assignments(self.assigned or [])


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Of commands that train an objective more than once."""

    gridded: Annotated[
        list[str] | None,
        Option(
            "--grid",
            help="Values of an option to choose among on validation data, as label-embedding.tau=1,2,4; again for more.",
            metavar="OBJECTIVE.OPTION=A,B,C",
            rich_help_panel="Method",
        ),
    ] = None

    @property
    def grids(self) -> dict[str, dict[str, list[Any]]]:
        return grids(self.gridded or [])


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where and how long; what is not given follows `labelkin.comparison.execute`."""

    jobs: Annotated[
        int, Option(help="Runs at once, in processes that share the cores or one GPU.", rich_help_panel="Machine")
    ] = 1
    engine: Annotated[str, Option(metavar="local|ray", rich_help_panel="Machine")] = "local"
    address: Annotated[
        str | None, Option(help="Of a Ray cluster. Default: one of its own.", rich_help_panel="Machine")
    ] = None
    budget: Annotated[
        str | None,
        Option(
            help="Begin no run that would not end in this time, as 90s, 10m or 2h.",
            metavar="TIME",
            rich_help_panel="Machine",
        ),
    ] = None

    def chosen(self) -> dict[str, Any]:
        return {**asdict(self), "budget": seconds("budget", self.budget)}


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    data_dir: Annotated[
        Path | None, Option(help="Where the named sets lie, or are downloaded to.", rich_help_panel="Data")
    ] = None
    validation_fraction: Annotated[
        float | None,
        Option(
            "--validation",
            help="Share of the training set kept for choosing the best epoch. Default: none, the last epoch counts.",
            metavar="FRACTION",
            rich_help_panel="Data",
        ),
    ] = None
    test_fraction: Annotated[
        float | None,
        Option(
            "--test",
            help="Share tested on, where the data come without a test set. Default: 0.2, of sentence pairs 0.1.",
            metavar="FRACTION",
            rich_help_panel="Data",
        ),
    ] = None
    subset: Annotated[
        float | None,
        Option(help="Share of every class's training samples used.", metavar="FRACTION", rich_help_panel="Data"),
    ] = None
    label_noise: Annotated[
        float,
        Option(help="Share of training labels exchanged between paired classes.", rich_help_panel="Data"),
    ] = 0.0
    classes: Annotated[str | None, Option(help="Use these classes alone: a,b,c.", rich_help_panel="Data")] = None
    label: Annotated[str | None, Option(help="A table's column of labels. Default: label.", rich_help_panel="Data")] = (
        None
    )
    features: Annotated[
        str | None, Option(help="A table's columns of numbers: a,b,c. Default: all others.", rich_help_panel="Data")
    ] = None
    image: Annotated[str | None, Option(help="A table's column of image paths.", rich_help_panel="Data")] = None
    text: Annotated[str | None, Option(help="A table's column of texts.", rich_help_panel="Data")] = None
    encoder: Annotated[
        str | None,
        Option(
            help="What texts become vectors by: hashed-tfidf, minilm, hf:NAME, st:NAME or a model's folder. Default: "
            "hashed-tfidf.",
            rich_help_panel="Data",
        ),
    ] = None
    remove: Annotated[
        str | None,
        Option(
            help="What posts of 20-newsgroups lose: headers,footers,quotes or none. Default: all three.",
            metavar="A,B",
            rich_help_panel="Data",
        ),
    ] = None
    labels: Annotated[Path | None, Option(help="The file of labels of a .npy file.", rich_help_panel="Data")] = None
    image_size: Annotated[
        int | None,
        Option(help="Side that images are brought to. Default: the one they share, else 64.", rich_help_panel="Data"),
    ] = None
    on_error: Annotated[
        Literal["stop", "skip"] | None,
        Option(help="What an image that cannot be read does. Default: stop.", rich_help_panel="Data"),
    ] = None

    def chosen(self) -> dict[str, Any]:
        """What was given, as plain values that a run's folder can keep."""
        given = {**asdict(self), "classes": words(self.classes), "features": words(self.features)}
        given["remove"] = words(self.remove)
        given |= {name: str(given[name]) for name in ("data_dir", "labels") if given[name] is not None}
        return {field.name: given[field.name] for field in fields(self) if given[field.name] != field.default}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    epochs: Annotated[int, Option(rich_help_panel="Training")] = 10
    batch_size: Annotated[int, Option(help="Over all processes.", rich_help_panel="Training")] = 128
    optimizer: Annotated[str, Option(metavar="sgd|adam|adamw", rich_help_panel="Training")] = "adam"
    lr: Annotated[float, Option(help="Learning rate.", rich_help_panel="Training")] = 1e-3
    momentum: Annotated[float, Option(help="Of SGD.", rich_help_panel="Training")] = 0.9
    nesterov: Annotated[bool, Option("--nesterov", help="Of SGD.", rich_help_panel="Training")] = False
    weight_decay: Annotated[float, Option(rich_help_panel="Training")] = 0.0
    schedule: Annotated[
        str,
        Option(
            help="Of the learning rate.", metavar="constant|step|linear|cosine|exponential", rich_help_panel="Training"
        ),
    ] = "constant"
    warmup: Annotated[int, Option(help="Epochs of linear warm-up.", rich_help_panel="Training")] = 0
    gamma: Annotated[float, Option(help="The factor of step and exponential.", rich_help_panel="Training")] = 0.1
    milestones: Annotated[str, Option(help="Epochs at which step multiplies: 40,80.", rich_help_panel="Training")] = ""
    clip: Annotated[float | None, Option(help="Largest gradient norm.", rich_help_panel="Training")] = None
    accumulate: Annotated[
        int, Option(help="Parts that a batch is computed in, to save memory.", rich_help_panel="Training")
    ] = 1
    balanced: Annotated[int | None, Option(help="Samples a class in each batch.", rich_help_panel="Training")] = None
    augment: Annotated[
        str,
        Option(help="As flip,pad-crop:4; also shift:0.1 and rotation:15.", metavar="A,B", rich_help_panel="Training"),
    ] = ""
    evaluation: Annotated[
        str,
        Option(
            help="batch-statistics measures in training mode, as some published figures were.",
            metavar="eval|batch-statistics",
            rich_help_panel="Training",
        ),
    ] = "eval"
    report: Annotated[
        str,
        Option(
            "--reported-epoch",
            help="The epoch that counts. auto: the best on validation data, else the last.",
            metavar="auto|last|best-test",
            rich_help_panel="Training",
        ),
    ] = "auto"
    threads: Annotated[
        int, Option(help="Of a process; their number changes the last bits.", rich_help_panel="Machine")
    ] = 1
    accelerator: Annotated[str, Option(metavar="auto|cpu|gpu", rich_help_panel="Machine")] = "auto"
    devices: Annotated[int, Option(help="Processes, each on a device.", rich_help_panel="Machine")] = 1
    strategy: Annotated[str, Option(help="With several devices: ddp.", rich_help_panel="Machine")] = "auto"
    precision: Annotated[str, Option(metavar="32-true|64-true|bf16-mixed", rich_help_panel="Machine")] = "32-true"
    compile: Annotated[bool, Option("--compile", help="torch.compile the model.", rich_help_panel="Machine")] = False
    workers: Annotated[int, Option(help="Processes that read images ahead.", rich_help_panel="Machine")] = 0

    def settings(self) -> dict[str, Any]:
        """The keywords of `labelkin.training.Settings`."""
        milestones = tuple(whole_numbers("milestones", self.milestones))
        return {**asdict(self), "milestones": milestones, "augment": tuple(words(self.augment) or ())}


PANEL = "Corpus"


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """A field is called as the argument of `load_corpus` or of a translation that it becomes."""

    tokens: Annotated[
        Literal["words", "space", "characters"] | None,
        Option(help="How sentences are cut. Default: words, punctuation apart.", rich_help_panel=PANEL),
    ] = None
    cased: Annotated[bool, Option("--cased", help="Keep capitals.", rich_help_panel=PANEL)] = False
    min_count: Annotated[int | None, Option(help="Rarer words are unknown. Default: 1.", rich_help_panel=PANEL)] = None
    max_words: Annotated[int | None, Option(help="Size of each vocabulary at most.", rich_help_panel=PANEL)] = None
    max_length: Annotated[
        int | None, Option(help="Training pairs with more tokens are left out.", rich_help_panel=PANEL)
    ] = None
    beam: Annotated[
        int | None, Option(help="Of the search at the end; 1 is greedy. Default: 10.", rich_help_panel=PANEL)
    ] = None
    length_penalty: Annotated[
        float | None, Option(help="0: plain probability. 1: mean over words. Default: 0.", rich_help_panel=PANEL)
    ] = None
    measure: Annotated[Literal["bleu", "rouge"] | None, Option(help="Default: bleu.", rich_help_panel=PANEL)] = None

    def check(self, data: str) -> None:
        """Refuse these options where the data are no sentence pairs."""
        from labelkin.data import is_corpus

        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given and not is_corpus(data):
            raise InputError(
                f"--{given[0].replace('_', '-')}: is for sentence pairs, given as FILE:FILE, FOLDER:en-de or multi30k:en-de; "
                f"leave it out for {data!r}."
            )

    def chosen(self) -> dict[str, Any]:
        """What was given, as `RunSpec.data_options` keeps it."""
        given = {name: value for name, value in asdict(self).items() if value is not None and name != "cased"}
        return {**given, "lower": False} if self.cased else given
