"""Datasets by name or path, their splits, and batches of samples on a device.

`load` reads a published dataset (`load("digits")`), a folder of images (`load("photos/")`), a table
(`load("table.csv", label="species")`) or texts (`load("reviews.csv", text="body", label="stars")`). `Batches` iterates over
a split: `Batches(data.train, batch_size=128, shuffle=True, normalize=data.normalize)`.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.data._augment import AUGMENTATIONS as AUGMENTATIONS
    from labelkin.data._augment import PRESETS as PRESETS
    from labelkin.data._augment import Augmentation as Augmentation
    from labelkin.data._augment import Chain as Chain
    from labelkin.data._augment import Flip as Flip
    from labelkin.data._augment import Normalize as Normalize
    from labelkin.data._augment import PadCrop as PadCrop
    from labelkin.data._augment import Rotation as Rotation
    from labelkin.data._augment import Shift as Shift
    from labelkin.data._augment import augment as augment
    from labelkin.data._batches import Batches as Batches
    from labelkin.data._batches import Minibatch as Minibatch
    from labelkin.data._batches import Visits as Visits
    from labelkin.data._content import DIGEST as DIGEST
    from labelkin.data._content import content_digests as content_digests
    from labelkin.data._content import file_digests as file_digests
    from labelkin.data._content import sample_digests as sample_digests
    from labelkin.data._content import seen_before as seen_before
    from labelkin.data._dataset import ArraySplit as ArraySplit
    from labelkin.data._dataset import Dataset as Dataset
    from labelkin.data._dataset import FileSplit as FileSplit
    from labelkin.data._dataset import Split as Split
    from labelkin.data._dataset import class_names as class_names
    from labelkin.data._encoders import Tokens as Tokens
    from labelkin.data._encoders import restored as restored
    from labelkin.data._encoders.class_vectors import class_vectors as class_vectors
    from labelkin.data._fingerprint import digest as digest
    from labelkin.data._fingerprint import fingerprint as fingerprint
    from labelkin.data._fingerprint import folder_content as folder_content
    from labelkin.data._fingerprint import hash_lines as hash_lines
    from labelkin.data._fingerprint import listing_digest as listing_digest
    from labelkin.data._held_out import read_held_out as read_held_out
    from labelkin.data._loading import PARTIAL as PARTIAL
    from labelkin.data._loading import load as load
    from labelkin.data._loading import reads_image_files as reads_image_files
    from labelkin.data._locate import cache_folder as cache_folder
    from labelkin.data._locate import data_folders as data_folders
    from labelkin.data._locate import derived_folder as derived_folder
    from labelkin.data._locate import download_files as download_files
    from labelkin.data._locate import find_files as find_files
    from labelkin.data._locate import find_or_download as find_or_download
    from labelkin.data._mixing import MIXINGS as MIXINGS
    from labelkin.data._mixing import CutMix as CutMix
    from labelkin.data._mixing import Mixing as Mixing
    from labelkin.data._mixing import Mixup as Mixup
    from labelkin.data._order import Ints as Ints
    from labelkin.data._order import samples_at_once as samples_at_once
    from labelkin.data._order import shard as shard
    from labelkin.data._order import shuffled as shuffled
    from labelkin.data._partial import joined as joined
    from labelkin.data._photo_augment import ColorJitter as ColorJitter
    from labelkin.data._photo_augment import RandAugment as RandAugment
    from labelkin.data._photo_augment import RandomErasing as RandomErasing
    from labelkin.data._photo_augment import RandomResizedCrop as RandomResizedCrop
    from labelkin.data._photo_augment import VerticalFlip as VerticalFlip
    from labelkin.data._readers.arrays import CLASS_NAME_KEYS as CLASS_NAME_KEYS
    from labelkin.data._readers.arrays import TARGET_KEYS as TARGET_KEYS
    from labelkin.data._readers.arrays import check_finite as check_finite
    from labelkin.data._readers.arrays import labels_beside as labels_beside
    from labelkin.data._readers.columns import parse_number as parse_number
    from labelkin.data._readers.folders import SPLIT_NAMES as SPLIT_NAMES
    from labelkin.data._readers.images import OnError as OnError
    from labelkin.data._readers.images import UnreadableImage as UnreadableImage
    from labelkin.data._readers.images import decoder_errors as decoder_errors
    from labelkin.data._readers.rows import ROW_NAMES as ROW_NAMES
    from labelkin.data._readers.rows import read_rows as read_rows
    from labelkin.data._readers.rows import with_point as with_point
    from labelkin.data._readers.texts import TextSplit as TextSplit
    from labelkin.data._readers.texts import without_words as without_words
    from labelkin.data._sets.sources import DATASETS as DATASETS
    from labelkin.data._sets.sources import MULTI30K as MULTI30K
    from labelkin.data._sets.sources import MULTI30K_PLACE as MULTI30K_PLACE
    from labelkin.data._sets.sources import Source as Source
    from labelkin.data._sets.sources import fetch_by_name as fetch_by_name
    from labelkin.data._sets.sources import inventory as inventory
    from labelkin.data._sets.sources import is_corpus as is_corpus
    from labelkin.data._sets.text_trees import out_of_scope as out_of_scope
    from labelkin.data._splits import LEAST_CALIBRATION as LEAST_CALIBRATION
    from labelkin.data._splits import calibration_part as calibration_part
    from labelkin.data._splits import fold_part as fold_part
    from labelkin.data._splits import label_noise as label_noise
    from labelkin.data._splits import stratified as stratified
    from labelkin.data._splits import subset as subset
    from labelkin.data._unlabeled import SampleFormat as SampleFormat
    from labelkin.data._unlabeled import UnlabeledBatch as UnlabeledBatch
    from labelkin.data._unlabeled import read_unlabeled as read_unlabeled
    from labelkin.data._unlabeled import sample_format as sample_format

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_augment": [
            "AUGMENTATIONS",
            "Augmentation",
            "Chain",
            "Flip",
            "Normalize",
            "PadCrop",
            "Rotation",
            "Shift",
            "augment",
        ],
        "_batches": ["Batches", "Minibatch"],
        "_dataset": ["ArraySplit", "Dataset", "FileSplit", "Split"],
        "_encoders.class_vectors": ["class_vectors"],
        "_loading": ["load"],
        "_mixing": ["CutMix", "Mixup"],
        "_photo_augment": ["ColorJitter", "RandAugment", "RandomErasing", "RandomResizedCrop", "VerticalFlip"],
        "_locate": ["cache_folder", "data_folders", "download_files", "find_files"],
        "_readers.images": ["UnreadableImage"],
        "_readers.texts": ["TextSplit"],
        "_sets.sources": ["DATASETS", "Source"],
        "_splits": ["fold_part", "label_noise", "stratified", "subset"],
        "_sets.text_trees": ["out_of_scope"],
    },
    internal={
        "_augment": ["PRESETS"],
        "_batches": ["Visits"],
        "_content": ["DIGEST", "content_digests", "file_digests", "sample_digests", "seen_before"],
        "_dataset": ["class_names"],
        "_encoders": ["Tokens", "restored"],
        "_fingerprint": ["digest", "fingerprint", "folder_content", "hash_lines", "listing_digest"],
        "_held_out": ["read_held_out"],
        "_sets.sources": ["fetch_by_name", "inventory", "MULTI30K", "MULTI30K_PLACE", "is_corpus"],
        "_loading": ["PARTIAL", "reads_image_files"],
        "_mixing": ["MIXINGS", "Mixing"],
        "_locate": ["derived_folder", "find_or_download"],
        "_order": ["Ints", "samples_at_once", "shard", "shuffled"],
        "_partial": ["joined"],
        "_readers.arrays": ["CLASS_NAME_KEYS", "TARGET_KEYS", "check_finite", "labels_beside"],
        "_readers.columns": ["parse_number"],
        "_readers.folders": ["SPLIT_NAMES"],
        "_readers.images": ["OnError", "decoder_errors"],
        "_readers.rows": ["ROW_NAMES", "read_rows", "with_point"],
        "_readers.texts": ["without_words"],
        "_splits": ["LEAST_CALIBRATION", "calibration_part"],
        "_unlabeled": ["SampleFormat", "UnlabeledBatch", "read_unlabeled", "sample_format"],
    },
    deprecated={"Normalise": "Normalize", "fetch": "download_files", "find": "find_files"},
)
