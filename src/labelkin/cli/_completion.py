"""Names that the shell completes. They are copied here, because importing them needs torch; a test compares the copies."""

OBJECTIVES = (
    "one-hot",
    "label-smoothing",
    "confidence-penalty",
    "semantic-smoothing",
    "mixed-cross-entropy",
    "hierarchical",
    "convex-hierarchical",
    "conditional-softmax",
    "hierarchical-cross-entropy",
    "kin",
    "label-embedding",
    "compressed-label-embedding",
    "pretrained-label-embedding",
    "adaptive-labels",
    "retrospection",
    "static-labels",
    "haframe",
    "bilt",
    "tree-soft-labels",
    "hier-cos",
    "hierarchical-ensemble",
    "online-label-smoothing",
    "unit-sphere",
)
# fmt: off
BACKBONES = (
    "tiny-cnn", "mlp", "3-layer-0", "3-layer-1", "3-layer-2", "3-layer-3", "6-layer-0", "6-layer-1", "6-layer-2", "9-layer",
    "12-layer", "resnet-3-0", "resnet-3-1", "resnet-9", "resnet-18-bottleneck", "text-head", "text-head-256", "text-head-512",
    "lenet", "cnn-6", "resnet-small", "cnn-5x5", "mlp-500", "resnet-8", "resnet-18-double", "resnet-18", "resnet-32",
    "resnet-34", "resnet-152", "wrn-28-8", "wrn-28-10", "wrn-28-12",
)
DATA = (
    "digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "cifar100:coarse", "food101", "awa2", "imdb", "yelp-polarity",
    "20-newsgroups", "clinc150", "naics2012", "trec", "wordnet", "stdlib", "languages", "multi30k:en-de",
)
# fmt: on
PRETRAINED = ("efficientnet-lite0", "efficientnet-lite0-160", "efficientnet-lite0-96")
LIBRARIES = ("timm:", "timm-scratch:", "hf:")


def complete_objective(incomplete: str) -> list[str]:
    """Return the objectives whose names begin with the typed text."""
    return _beginning(incomplete, OBJECTIVES)


def complete_objectives(incomplete: str) -> list[str]:
    """Return lists of objectives that begin with the typed text, such as `one-hot,ki`; no objective is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    names = OBJECTIVES if comma else ("all", *OBJECTIVES)
    return [f"{before}{comma}{name}" for name in _beginning(last, names) if name not in before.split(",")]


def complete_backbones(incomplete: str) -> list[str]:
    """Return the backbones whose names begin with the typed text."""
    return _beginning(incomplete, (*BACKBONES, *PRETRAINED, *LIBRARIES))


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets whose names begin with the typed text."""
    return _beginning(incomplete, DATA)


def _beginning(text: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(text)]
