"""The published datasets by name: their list, their readers, and downloads of those that are missing."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, near
from labelkin.data._dataset import RawDataset
from labelkin.data._encoders.hashed import CHARACTERS, CODE
from labelkin.data._locate import Download, Place, find_files, find_or_download
from labelkin.data._sets.cifar import VERSIONS, cifar_at, read_cifar
from labelkin.data._sets.definitions import DEFINITIONS, definitions_digest, read_definitions
from labelkin.data._sets.images import (
    DIGITS,
    FASHION,
    FILES,
    has_idx_files,
    is_awa2,
    is_food101,
    read_awa2,
    read_digits,
    read_food101,
    read_idx_folder,
)
from labelkin.data._sets.languages import languages_digest, read_languages
from labelkin.data._sets.stdlib import read_stdlib, stdlib_digest
from labelkin.data._sets.text_trees import CLINC150, NAICS2012, TREC, read_clinc150, read_naics2012, read_trec
from labelkin.data._sets.texts import (
    is_imdb,
    is_newsgroups,
    is_yelp_polarity,
    read_imdb,
    read_newsgroups,
    read_yelp_polarity,
)

IMAGE_OPTIONS = ("image_size", "on_error", "stream")


class Source(NamedTuple):
    """A published dataset.

    Args:
        title: Description.
        place: Where its files are, and where to download them.
        read: Function that reads the files.
        options: Options of `load` that `read` takes.
        tree: Name of its tree, if the package contains one.
        encoder: Encoder of its texts, if it is not the default one.
        digest: Function that returns a digest of its content, for a dataset that differs between machines, or None if the
            dataset is missing.

    Example:
        >>> from labelkin.data import DATASETS
        >>> DATASETS["cifar10"].title
        '60,000 photographs in 10 classes, 32 x 32'
    """

    title: str
    place: Place
    read: Callable[..., RawDataset]
    options: tuple[str, ...] = ()
    tree: str | None = None
    encoder: str | None = None
    digest: Callable[[], str | None] | None = None


def _idx_place(folder: str, other: str, url: str, checksums: tuple[str, ...], fixed: tuple[str, ...] = ()) -> Place:
    into = f"{folder}/raw"
    downloads = tuple(Download(f"{url}/{file}.gz", md5, into) for file, md5 in zip(FILES, checksums, strict=True))
    put = f"{', '.join(FILES)} (plain or .gz) into {into}"
    return Place((into, folder, other), has_idx_files, put, downloads, fixed)


def _cifar_place(name: str, md5: str) -> Place:
    versions = [version for version in VERSIONS if version.name == name]
    items = [version.folder for version in versions] + [version.archive for version in versions]
    archive = versions[0].archive
    return Place(
        (*items, *(f"{name}/{item}" for item in items)),
        lambda path: cifar_at(path) == name,
        f"{archive} (packed or unpacked)",
        (Download(f"https://www.cs.toronto.edu/~kriz/{archive}", md5),),
    )


def _no_path(read: Callable[[], RawDataset]) -> Callable[[Path], RawDataset]:
    return lambda _: read()


INSIDE = Place(("",), lambda _: True, "")  # part of a Python package; no files are needed
MNIST = _idx_place(
    "MNIST",
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)
FASHION_MNIST = _idx_place(
    "FashionMNIST",
    "fashion-mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    fixed=("/usr/share/datasets/fashion-mnist",),  # Debian's package dataset-fashion-mnist
)
CIFAR10 = _cifar_place("cifar10", "c58f30108f718f92721af3b95e74349a")
CIFAR100 = _cifar_place("cifar100", "eb9058c3a382ffc7106e4002c42a8d85")
FOOD101 = Place(
    ("food-101", "food101"),
    is_food101,
    "the folder food-101 that food-101.tar.gz unpacks to",
    (
        Download(
            "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
            "85eeb15f3717b99a5da872d97d918f87",
            unpacks_to="food-101",
        ),
    ),
)
AWA2 = Place(  # its authors publish no checksum, so it is never downloaded
    ("Animals_with_Attributes2", "AwA2", "awa2"),
    is_awa2,
    "the folder Animals_with_Attributes2 of AwA2-data.zip (https://cvml.ista.ac.at/AwA2)",
)
IMDB = Place(
    ("aclImdb", "imdb"),
    is_imdb,
    "the folder aclImdb that aclImdb_v1.tar.gz unpacks to",
    (
        Download(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "7c2ac02c03563afcf9b574c7e56c153a",
            unpacks_to="aclImdb",
        ),
    ),
)
YELP_POLARITY = Place(  # its authors publish no checksum, so it is never downloaded
    ("yelp_review_polarity_csv", "yelp-polarity"),
    is_yelp_polarity,
    "the folder yelp_review_polarity_csv with its train.csv and test.csv",
)
NEWSGROUPS = Place(  # its authors publish no checksum, so it is never downloaded
    ("20news", "20news-bydate", "20newsgroups", "20-newsgroups", ""),
    is_newsgroups,
    "the folders 20news-bydate-train and 20news-bydate-test of 20news-bydate.tar.gz (http://qwone.com/~jason/20Newsgroups)",
)
MULTI30K = "multi30k"
MULTI30K_PLACE = Place(  # its authors publish no checksum, so it is never downloaded
    (MULTI30K, "multi30k/data/task1/raw"),
    lambda folder: any((folder / name).is_file() for name in ("train.en", "train.en.gz")),
    "the folder data/task1/raw of https://github.com/multi30k/dataset as multi30k",
)

# Name -> published dataset, as `load` takes it.
DATASETS: dict[str, Source] = {
    "digits": Source("1,797 handwritten digits, 8 x 8, from scikit-learn", INSIDE, _no_path(read_digits)),
    "mnist": Source("70,000 handwritten digits, 28 x 28", MNIST, partial(read_idx_folder, classes=DIGITS)),
    "fashion-mnist": Source(
        "70,000 pieces of clothing in 10 classes, 28 x 28",
        FASHION_MNIST,
        partial(read_idx_folder, classes=FASHION),
        tree="fashion-mnist",
    ),
    "cifar10": Source("60,000 photographs in 10 classes, 32 x 32", CIFAR10, read_cifar, tree="cifar10"),
    "cifar100": Source("60,000 photographs in 100 classes, 32 x 32", CIFAR100, read_cifar, tree="cifar100"),
    "cifar100:coarse": Source(
        "CIFAR-100 with its 20 superclasses as classes", CIFAR100, partial(read_cifar, coarse=True)
    ),
    "food101": Source("101,000 photographs of 101 dishes", FOOD101, read_food101, IMAGE_OPTIONS),
    "awa2": Source("37,322 photographs of 50 animal classes", AWA2, read_awa2, IMAGE_OPTIONS),
    "imdb": Source("50,000 film reviews, negative and positive", IMDB, read_imdb, ("encoder",)),
    "yelp-polarity": Source(
        "598,000 reviews of businesses, negative and positive", YELP_POLARITY, read_yelp_polarity, ("encoder",)
    ),
    "20-newsgroups": Source("18,846 posts to 20 newsgroups", NEWSGROUPS, read_newsgroups, ("encoder", "remove")),
    "clinc150": Source(
        "22,500 requests to an assistant, 150 intents in 10 domains", CLINC150, read_clinc150, ("encoder",)
    ),
    "naics2012": Source("18,784 activities of 894 industries in 5 levels", NAICS2012, read_naics2012, ("encoder",)),
    "trec": Source("5,943 questions of 50 types in 6 groups", TREC, read_trec, ("encoder",)),
    "wordnet": Source(
        "18,524 definitions of nouns of 304 kinds, in WordNet's tree",
        DEFINITIONS,
        read_definitions,
        ("encoder",),
        digest=definitions_digest,
    ),
    "stdlib": Source(
        "functions of Python's standard library by module, in the chapters of its reference",
        INSIDE,
        _no_path(read_stdlib),
        ("encoder",),
        encoder=CODE,
        digest=stdlib_digest,
    ),
    "languages": Source(
        "names of countries, languages and currencies by language, in the families of languages",
        INSIDE,
        _no_path(read_languages),
        ("encoder",),
        encoder=f"{CHARACTERS}:1024",
        digest=languages_digest,
    ),
}

# Parallel corpora, which `labelkin.translate.load_corpus` reads: description and files.
CORPORA: dict[str, tuple[str, Place]] = {
    "multi30k:en-de": ("31,014 captions in English, German, French and Czech, any pair of them", MULTI30K_PLACE),
}


def is_corpus(data: str) -> bool:
    """Return whether `data` names the two sides of a parallel corpus instead of a dataset or a file."""
    first, _, second = data.partition(":")
    return bool(first and second) and data not in DATASETS and not Path(data).expanduser().exists()


class Known(NamedTuple):
    """A dataset or corpus known by name."""

    title: str
    place: Place


KNOWN = {name: Known(source.title, source.place) for name, source in DATASETS.items()} | {
    name: Known(*known) for name, known in CORPORA.items()
}


class Entry(NamedTuple):
    """A dataset known by name, and where it was found."""

    name: str
    title: str
    at_hand: bool
    path: Path | None  # None if it was not found or is part of a Python package
    put: str  # the files that have to be placed in a data folder


def inventory(*, data_dir: str | os.PathLike[str] | None = None) -> list[Entry]:
    """Return one entry per dataset and corpus known by name."""
    entries = []
    for name, (title, place) in KNOWN.items():
        path = find_files(place, data_dir=data_dir)
        entries.append(Entry(name, title, path is not None, None if place is INSIDE else path, place.put))
    return entries


def fetch_by_name(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a dataset, and download it if it is missing; None for a dataset that needs no files."""
    if name not in KNOWN:
        raise InputError(f"there is no dataset {name!r}; known datasets: {', '.join(KNOWN)}.{near(name, KNOWN)}")
    place = KNOWN[name].place
    return None if place is INSIDE else find_or_download(name, place, data_dir=data_dir)
