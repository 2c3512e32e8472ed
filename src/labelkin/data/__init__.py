"""Data sets by name or path, their splits, and batches of them on the device.

`load("digits")`, `load("cifar100", validation_fraction=0.1)`, `load("photos/")`, `load("table.csv", label="species")`,
`load("reviews.csv", text="body", label="stars")`;
then `Batches(data.train, batch_size=128, shuffle=True, normalize=data.normalize)`.
"""

import warnings
from typing import Any

from labelkin.data.augment import AUGMENTATIONS, Augmentation, Chain, Flip, Normalize, PadCrop, Rotation, Shift, augment
from labelkin.data.batches import Batches, Minibatch
from labelkin.data.dataset import ArraySplit, Dataset, FileSplit, Split
from labelkin.data.encoders.class_vectors import class_vectors
from labelkin.data.images import UnreadableImage
from labelkin.data.loading import load
from labelkin.data.locate import cache_folder, data_folders, fetch, find
from labelkin.data.sources import DATASETS, Source
from labelkin.data.splits import label_noise, stratified, subset
from labelkin.data.text_split import TextSplit

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "ArraySplit",
    "Augmentation",
    "Batches",
    "Chain",
    "Dataset",
    "FileSplit",
    "Flip",
    "Minibatch",
    "Normalize",
    "PadCrop",
    "Rotation",
    "Shift",
    "Source",
    "Split",
    "TextSplit",
    "UnreadableImage",
    "augment",
    "cache_folder",
    "class_vectors",
    "data_folders",
    "fetch",
    "find",
    "label_noise",
    "load",
    "stratified",
    "subset",
]


def __getattr__(name: str) -> Any:
    if name == "Normalise":
        warnings.warn("labelkin.data.Normalise is deprecated; use Normalize.", DeprecationWarning, stacklevel=2)
        return Normalize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
