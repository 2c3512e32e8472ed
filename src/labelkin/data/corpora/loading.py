"""`load_corpus`: two files, a folder or a name in, a corpus out."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelkin._checks import InputError, check_choice, check_count, check_number, near
from labelkin.data.corpora.corpus import Corpus, Texts, build_corpus
from labelkin.data.corpora.files import at_hand, file_at, read_pairs
from labelkin.data.fingerprint import digest, hashed
from labelkin.data.locate import obtain
from labelkin.data.sources import DATASETS, MULTI30K, MULTI30K_PLACE

FORMS = "FILE_SOURCE:FILE_TARGET, FOLDER:SOURCE-TARGET or multi30k:en-de"
MULTI30K_LANGUAGES = ("en", "de", "fr", "cs")
MULTI30K_TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
PARTS = {"train": ("train",), "val": ("val", "valid", "dev"), "test": ("test",)}
HELD_OUT = 21  # a stream of random numbers of its own


def load_corpus(
    data: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    test: str | None = None,
    test_fraction: float | None = None,
    validation_fraction: float | None = None,
    subset: float | None = None,
    seed: int = 0,
    tokens: str = "words",
    lower: bool = True,
    min_count: int = 1,
    max_words: int | None = None,
    max_length: int | None = None,
) -> Corpus:
    """`"a.en:a.de"`, two files with a sentence a line; `"FOLDER:en-de"`, which holds train.en and train.de, and val and test
    likewise; or `"multi30k:en-de"`. Files may be packed as .gz.

    Where there is no test part, `test_fraction` (.1) of the pairs is tested on, and `validation_fraction`, on request,
    chooses the epoch. Multi30k is tested on `test`, "test_2016_flickr" unless told. `subset` keeps that share of the
    training pairs. The rest is `build_corpus`'s.
    """
    check_count("seed", seed, least=0)
    shares = {"test_fraction": test_fraction, "validation_fraction": validation_fraction, "subset": subset}
    for argument, share in shares.items():
        if share is not None:
            check_number(argument, share, low=0, high=1, open_low=True)
    texts = _texts(data, data_dir, test)
    if "test" not in texts:
        texts = _held_out(texts, "test", 0.1 if test_fraction is None else test_fraction, seed)
    elif test_fraction is not None:
        raise InputError(f"test_fraction: has no meaning for {data}, which comes with a test part.")
    if validation_fraction is not None:
        if "val" in texts:
            raise InputError(f"validation_fraction: has no meaning for {data}, which comes with a validation part.")
        texts = _held_out(texts, "val", validation_fraction, seed)
    if subset is not None and subset < 1:
        texts["train"] = _held_out(texts, "rest", 1 - subset, seed)["train"]
    return build_corpus(
        data, texts, tokens=tokens, lower=lower, min_count=min_count, max_words=max_words, max_length=max_length
    )


def corpus_files(data: str) -> list[Path]:
    """List the files of a corpus given by path: two files, or the files of two languages in a folder."""
    first, _, second = data.partition(":")
    path = Path(first).expanduser()
    if first == MULTI30K or not second:
        return []
    if path.is_dir():
        languages = tuple(f".{language}" for language in second.split("-"))
        return sorted(f for f in path.iterdir() if f.is_file() and f.name.removesuffix(".gz").endswith(languages))
    return [file for file in (at_hand(path), at_hand(Path(second).expanduser())) if file is not None]


def corpus_fingerprint(data: str) -> str:
    """Return a string that changes when the content of the files changes.

    A published corpus, and one whose files are missing, is returned as it was named.
    """
    first, _, second = data.partition(":")
    files = corpus_files(data)
    if first != MULTI30K and second and Path(first).expanduser().is_dir():
        return f"folder:{hashed(f'{file.name} {digest(file)}' for file in files)}:{second}"
    return ":".join(map(digest, files)) if len(files) == 2 else data


def _texts(data: str, data_dir: str | os.PathLike[str] | None, test: str | None) -> dict[str, Texts]:
    first, _, second = data.partition(":")
    if first == MULTI30K:
        source, target = _languages(second, MULTI30K_LANGUAGES)
        tested = MULTI30K_TESTS[0] if test is None else test
        check_choice("test", tested, MULTI30K_TESTS)
        folder = obtain(MULTI30K, MULTI30K_PLACE, data_dir=data_dir)
        names = {"train": "train", "val": "val", "test": tested}
        return {part: _read(folder, name, source, target) for part, name in names.items()}
    if test is not None:
        raise InputError(f"test: has no meaning for {data}; it names one of Multi30k's test sets.")
    path = Path(first).expanduser()
    if path.is_dir():
        return _folder_texts(path, *_languages(second))
    if at_hand(path) is None and not set(data) & {"/", ".", os.sep}:
        known = [*DATASETS, f"{MULTI30K}:en-de", f"{MULTI30K}:en-fr"]
        raise InputError(f"there is no data set {data!r}; a corpus is given as {FORMS}.{near(data, known)}")
    return {"train": read_pairs(file_at(path), file_at(Path(second).expanduser()))}


def _folder_texts(folder: Path, source: str, target: str) -> dict[str, Texts]:
    found = {}
    for part, names in PARTS.items():
        name = next((name for name in names if at_hand(folder / f"{name}.{source}") is not None), None)
        if name is not None:
            found[part] = _read(folder, name, source, target)
    if "train" not in found:
        file_at(folder / f"train.{source}")  # which says what is there instead
    return found


def _read(folder: Path, name: str, source: str, target: str) -> Texts:
    return read_pairs(file_at(folder / f"{name}.{source}"), file_at(folder / f"{name}.{target}"))


def _languages(text: str, known: Sequence[str] | None = None) -> tuple[str, str]:
    source, _, target = text.partition("-")
    for language in (source, target):
        if not language or (known is not None and language not in known):
            among = "" if known is None else f" of {', '.join(known)}"
            raise InputError(f"languages: expected two{among} with a hyphen between them, as en-de, got {text!r}.")
    if source == target:
        raise InputError(f"languages: expected two that differ, as en-de, got {text!r}.")
    return source, target


def _held_out(texts: dict[str, Texts], part: str, share: float, seed: int) -> dict[str, Texts]:
    """A share of the training pairs, drawn by the seed, as a part of its own."""
    source, target = texts["train"]
    order = np.random.default_rng([seed, HELD_OUT, len(part)]).permutation(len(source))
    count = round(share * len(source))
    if not 0 < count < len(source):
        raise InputError(
            f"{share} of {len(source)} training pairs for {part!r} leaves one side empty; bring more pairs."
        )
    chosen, rest = sorted(order[:count]), sorted(order[count:])
    taken = {
        name: ([source[i] for i in rows], [target[i] for i in rows]) for name, rows in ((part, chosen), ("train", rest))
    }
    return {**texts, **taken}
