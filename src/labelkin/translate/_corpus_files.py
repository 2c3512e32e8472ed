"""Load a parallel corpus from two files, a folder or a name."""

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelkin._checks import InputError, check_choice, check_count, check_number, counted, near
from labelkin._files import gunzip
from labelkin.data import DATASETS, MULTI30K, MULTI30K_PLACE, digest, find_or_download, hash_lines
from labelkin.translate._corpus import Corpus, Texts, build_corpus


def read_sentences(path: Path) -> list[str]:
    """Read one sentence per line; a file that is empty or not UTF-8, or that has an empty line, is refused."""
    try:
        text = _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}: expected UTF-8, got byte 0x{error.object[error.start]:02x} at byte offset {error.start} (line {place}); "
            "convert the file to UTF-8."
        ) from None
    lines = [
        line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")
    ]  # other line separators of Unicode do not end a line
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"{path}: expected one sentence per line, got an empty file.")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise InputError(
                f"{path}, line {number}: expected a sentence, got an empty line; remove it from both files."
            )
    return lines


def read_pairs(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Read two files whose lines correspond."""
    first, second = read_sentences(source), read_sentences(target)
    if len(first) != len(second):
        longer = source if len(first) > len(second) else target
        common = min(len(first), len(second))
        raise InputError(
            f"expected the same number of lines in {source} and {target}, got {len(first)} and {len(second)}; "
            f"line {common + 1} of {longer} has no counterpart."
        )
    return first, second


def at_hand(path: Path) -> Path | None:
    """Return the file, or the same file with the suffix .gz, if one of them exists."""
    packed = path.with_name(f"{path.name}.gz")
    return next((file for file in (path, packed) if file.is_file()), None)


def file_at(path: Path) -> Path:
    """Return the file, plain or with the suffix .gz, or raise if neither exists."""
    found = at_hand(path)
    if found is None:
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file {str(path)!r} or {path.name}.gz.{near(path.name, siblings)}")
    return found


def _bytes(path: Path) -> bytes:
    """Read a file, and decompress it if it is a .gz file."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gunzip(raw, path)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a complete .gz file ({error}); download or create it again.") from error


FORMS = "FILE_SOURCE:FILE_TARGET, FOLDER:SOURCE-TARGET or multi30k:en-de"
MULTI30K_LANGUAGES = ("en", "de", "fr", "cs")
MULTI30K_TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
PARTS = {"train": ("train",), "val": ("val", "valid", "dev"), "test": ("test",)}
HELD_OUT = 21  # a separate random stream


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
    r"""Load a parallel corpus.

    Args:
        data: `"a.en:a.de"`, two files with one sentence per line; `"FOLDER:en-de"`, a folder with train.en and train.de, and
            likewise for val and test; or `"multi30k:en-de"`. Files may be compressed (.gz).
        data_dir: Folder with Multi30k; see `labelkin.data.data_folders`.
        test: Test set of Multi30k ("test_2016_flickr" by default).
        test_fraction: Fraction of the pairs for a test part, if there is none (default 0.1).
        validation_fraction: Fraction of the training pairs for a validation part (default: no validation part).
        subset: Keep only this fraction of the training pairs.
        seed: Seed of the parts and of `subset`.
        tokens: "words" (words and punctuation), "space" (already tokenized) or "characters".
        lower: Whether to convert the texts to lower case.
        min_count: Leave out words that occur less often, on both sides.
        max_words: Keep only this many of the most frequent words, on both sides.
        max_length: Leave out training pairs with more tokens than this on either side.

    Returns:
        The corpus.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from labelkin.translate import load_corpus
        >>> with TemporaryDirectory() as folder:
        ...     for language, words in {"en": ("cat", "dog"), "de": ("Katze", "Hund")}.items():
        ...         _ = Path(folder, f"a.{language}").write_text("".join(f"{words[i % 2]}\n" for i in range(10)))
        ...     corpus = load_corpus(f"{folder}/a.en:{folder}/a.de", test_fraction=0.2)
        >>> {part: len(pairs) for part, pairs in corpus.parts.items()}
        {'train': 8, 'test': 2}
        >>> corpus.target.vocabulary.words[2:]
        ('katze', 'hund')
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
        raise InputError(f"test_fraction: does not apply to {data}, which has a test part; leave it out.")
    if validation_fraction is not None:
        if "val" in texts:
            raise InputError(
                f"validation_fraction: does not apply to {data}, which has a validation part; leave it out."
            )
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

    A published corpus, or one whose files are missing, is represented by its name.
    """
    first, _, second = data.partition(":")
    files = corpus_files(data)
    if first != MULTI30K and second and Path(first).expanduser().is_dir():
        return f"folder:{hash_lines(f'{file.name} {digest(file)}' for file in files)}:{second}"
    return ":".join(map(digest, files)) if len(files) == 2 else data


def _texts(data: str, data_dir: str | os.PathLike[str] | None, test: str | None) -> dict[str, Texts]:
    """Read the sentences of each part."""
    first, _, second = data.partition(":")
    if first == MULTI30K:
        source, target = _languages(second, MULTI30K_LANGUAGES)
        tested = MULTI30K_TESTS[0] if test is None else test
        check_choice("test", tested, MULTI30K_TESTS)
        folder = find_or_download(MULTI30K, MULTI30K_PLACE, data_dir=data_dir)
        names = {"train": "train", "val": "val", "test": tested}
        return {part: _read(folder, name, source, target) for part, name in names.items()}
    if test is not None:
        raise InputError(f"test: does not apply to {data}; it selects a test set of Multi30k.")
    path = Path(first).expanduser()
    if path.is_dir():
        return _folder_texts(path, *_languages(second))
    if at_hand(path) is None and not set(data) & {"/", ".", os.sep}:
        known = [*DATASETS, f"{MULTI30K}:en-de", f"{MULTI30K}:en-fr"]
        raise InputError(f"there is no dataset {data!r}; expected a corpus as {FORMS}.{near(data, known)}")
    return {"train": read_pairs(file_at(path), file_at(Path(second).expanduser()))}


def _folder_texts(folder: Path, source: str, target: str) -> dict[str, Texts]:
    """Read the parts of a corpus in a folder."""
    found = {}
    for part, names in PARTS.items():
        name = next((name for name in names if at_hand(folder / f"{name}.{source}") is not None), None)
        if name is not None:
            found[part] = _read(folder, name, source, target)
    if "train" not in found:
        file_at(folder / f"train.{source}")  # raises, and suggests similar names
    return found


def _read(folder: Path, name: str, source: str, target: str) -> Texts:
    return read_pairs(file_at(folder / f"{name}.{source}"), file_at(folder / f"{name}.{target}"))


def _languages(text: str, known: Sequence[str] | None = None) -> tuple[str, str]:
    """Parse two languages, such as "en-de"."""
    source, _, target = text.partition("-")
    for language in (source, target):
        if not language or (known is not None and language not in known):
            among = "" if known is None else f" of {', '.join(known)}"
            raise InputError(f"languages: expected two{among} with a hyphen between them, such as en-de, got {text!r}.")
    if source == target:
        raise InputError(f"languages: expected two different ones, such as en-de, got {text!r}.")
    return source, target


def _held_out(texts: dict[str, Texts], part: str, share: float, seed: int) -> dict[str, Texts]:
    """Move a random share of the training pairs to a new part."""
    source, target = texts["train"]
    order = np.random.default_rng([seed, HELD_OUT, len(part)]).permutation(len(source))
    count = round(share * len(source))
    if not 0 < count < len(source):
        raise InputError(
            f"{share} of {counted(len(source), 'training pair')} for {part!r} leaves a part without pairs; use more pairs."
        )
    chosen, rest = sorted(order[:count]), sorted(order[count:])
    taken = {
        name: ([source[i] for i in rows], [target[i] for i in rows]) for name, rows in ((part, chosen), ("train", rest))
    }
    return {**texts, **taken}
