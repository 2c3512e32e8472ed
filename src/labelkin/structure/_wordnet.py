"""Read WordNet's noun database (`index.noun`, `data.noun`) and build the tree above given classes."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_names, listed, near
from labelkin.structure._build import Parts, free_name
from labelkin.structure._graph import Rule, from_edges

_SENSE = re.compile(r"(?P<lemma>.+)\.n\.(?P<number>\d+)")
_HYPERNYMS = (b"@", b"@i")
_SYSTEM = Path("/usr/share/wordnet")  # Debian's wordnet-base


class Synset(NamedTuple):
    """A set of synonyms. `name` is that of its first word, as in `car.n.01`; `above` has the offsets of its hypernyms, and
    `definition` explains it, without the examples of use."""

    name: str
    words: tuple[str, ...]
    above: tuple[int, ...]
    definition: str


class WordNet:
    """The noun hierarchy of WordNet, with hypernyms and instance hypernyms; a noun may have several.

    A sense is named like `cat.n.01`, the first sense that the index lists for the word cat, or by a word, which means its first
    sense. Upper case and blanks are equivalent to lower case and underscores.

    Args:
        folder: A folder with `index.noun` and `data.noun`, or NLTK's `wordnet.zip`. None searches `WNSEARCHDIR`, `dict` in
            `WNHOME`, the folder of Debian's `wordnet-base`, and NLTK's data folders.

    Example:
        >>> from labelkin.structure import WordNet
        >>> wordnet = WordNet()
        >>> wordnet.sense("domestic dog")
        'dog.n.01'
        >>> wordnet.shortest_path("cat", "cat")
        0
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._files = _found(None if folder is None else Path(folder))
        self._synsets: dict[int, Synset] = {}

    def sense(self, sense: str) -> str:
        """Return the name of a synset: `automobile` and `automobile.n.01` are both `car.n.01`."""
        return self.synset(self.offset(sense)).name

    def hypernyms(self, sense: str) -> tuple[str, ...]:
        """Return the synsets directly above a sense, in the order of the database; none for the top."""
        return tuple(self.synset(offset).name for offset in self.synset(self.offset(sense)).above)

    def shortest_path(self, a: str, b: str) -> int:
        """Return the number of edges on the shortest path between two senses through a common hypernym."""
        return _shortest(self._steps_up(self.offset(a)), self._steps_up(self.offset(b)), a, b)

    def distances(self, senses: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return (K, K) shortest paths between all senses, the reference distance of 001 Eq. 4."""
        ways = [self._steps_up(self.offset(sense)) for sense in senses]
        table = np.zeros((len(ways), len(ways)))
        for i in range(len(ways)):
            for j in range(i):
                table[i, j] = table[j, i] = _shortest(ways[i], ways[j], senses[i], senses[j])
        return table

    def offset(self, sense: str) -> int:
        """Return the byte offset of a sense in `data.noun`, its key in the database."""
        check_names("sense", [sense])
        written = sense.strip().lower().replace(" ", "_")
        found = _SENSE.fullmatch(written)
        lemma, number = (found["lemma"], int(found["number"])) if found else (written, 1)
        offsets = self._offsets(lemma)
        if not offsets:
            raise InputError(f"WordNet has no noun {lemma!r}.{near(lemma, self._resembling(lemma))}")
        if not 1 <= number <= len(offsets):
            raise InputError(
                f"WordNet has no {sense!r}: the senses of {lemma!r} are numbered from 1 to {len(offsets)}."
            )
        return offsets[number - 1]

    def offsets(self) -> Iterator[int]:
        """Yield the offsets of all synsets, in the order of the database."""
        start = 0
        while start < len(self._data):
            if self._data[start] != ord(" "):  # the lines of the license are indented
                yield int(self._data[start : self._data.find(b" ", start)])
            start = self._data.find(b"\n", start) + 1 or len(self._data)

    def synset(self, offset: int) -> Synset:
        """Return the synset at an offset of `data.noun`."""
        if offset not in self._synsets:
            self._synsets[offset] = self._read(offset)
        return self._synsets[offset]

    def _read(self, offset: int) -> Synset:
        line = self._data[offset : self._data.find(b"\n", offset)]
        entry, _, gloss = line.partition(b" | ")
        fields = entry.split()
        if not fields or fields[0] != b"%08d" % offset:
            raise InputError(
                f"{self._files}: data.noun and index.noun belong to different databases (at offset {offset})."
            )
        count = int(fields[3], 16)
        words = tuple(word.decode() for word in fields[4 : 4 + 2 * count : 2])
        pointers = fields[5 + 2 * count :]
        above = [int(pointers[i + 1]) for i in range(0, len(pointers) - 3, 4) if pointers[i] in _HYPERNYMS]
        lemma = words[0].lower()
        name = f"{lemma}.n.{self._offsets(lemma).index(offset) + 1:02d}"
        definition = gloss.decode().partition('; "')[0].strip()
        return Synset(name, words, tuple(dict.fromkeys(above)), definition)

    def _steps_up(self, offset: int) -> dict[int, int]:
        """Return all synsets above a synset and itself, with the least number of steps."""
        steps = {offset: 0}
        reached = [offset]
        for node in reached:  # the loop appends to the list
            for parent in self.synset(node).above:
                if parent not in steps:
                    steps[parent] = steps[node] + 1
                    reached.append(parent)
        return steps

    def _offsets(self, lemma: str) -> list[int]:
        fields = self._index.get(lemma.encode(), b"").split()
        return [int(field) for field in fields[len(fields) - int(fields[1]) :]] if fields else []

    def _resembling(self, lemma: str) -> Iterator[str]:
        """Yield lemmas that may be similar; comparing all 118,000 would take seconds."""
        for key in self._index:
            if abs(len(key) - len(lemma)) <= 2:
                other = key.decode()
                if other[0] == lemma[0] or other[-3:] == lemma[-3:]:
                    yield other

    @cached_property
    def _index(self) -> dict[bytes, bytes]:
        """Map each lemma to the rest of its index line; the lines of the license are indented and skipped."""
        lines = (self._files / "index.noun").read_bytes().splitlines()
        split = (line.partition(b" ") for line in lines if not line.startswith(b" "))
        return {lemma: rest for lemma, _, rest in split}

    @cached_property
    def _data(self) -> bytes:
        return (self._files / "data.noun").read_bytes()


def _shortest(left: dict[int, int], right: dict[int, int], a: str, b: str) -> int:
    ways = [steps + right[node] for node, steps in left.items() if node in right]
    if not ways:
        raise InputError(f"WordNet: {a!r} and {b!r} have no common hypernym in this database.")
    return min(ways)


def _found(given: Path | None) -> Path | zipfile.Path:
    for place in [given] if given else _places():
        folder = zipfile.Path(place) / "wordnet" if place.suffix == ".zip" and place.is_file() else place
        if all((folder / name).is_file() for name in ("index.noun", "data.noun")):
            return folder
    if given:
        raise InputError(f"{given}: expected a WordNet folder with index.noun and data.noun, or NLTK's wordnet.zip.")
    raise InputError(
        "WordNet's files index.noun and data.noun were not found: install the Debian package wordnet-base, or set "
        "WNSEARCHDIR to their folder (or WNHOME to the folder above `dict`, or NLTK_DATA to an NLTK data folder)."
    )


def _places() -> Iterator[Path]:
    if folder := os.environ.get("WNSEARCHDIR"):
        yield Path(folder)
    if folder := os.environ.get("WNHOME"):
        yield Path(folder, "dict")
    yield _SYSTEM
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    for folder in [*named, os.path.expanduser("~/nltk_data"), "/usr/share/nltk_data"]:
        yield Path(folder, "corpora", "wordnet")
        yield Path(folder, "corpora", "wordnet.zip")


Database = WordNet | str | os.PathLike[str]


def from_wordnet(
    names: Sequence[str], *, senses: Mapping[str, str] | None, rule: Rule | None, database: Database | None
) -> Parts:
    """Build a tree above given classes; see `Taxonomy.from_wordnet`."""
    check_names("names", names, least=2)
    senses = senses or {}
    for name in senses:
        if name not in names:
            raise InputError(f"senses: {name!r} is not among the names.{near(name, names)}")
    wordnet = database if isinstance(database, WordNet) else WordNet(database)
    synsets = {name: wordnet.offset(senses.get(name, name)) for name in names}
    grown = from_edges(_edges(wordnet, synsets), rule=rule or "shortest")
    if grown.chosen and rule is None:
        warnings.warn(
            f"WordNet has several parents for {listed(grown.chosen, limit=20)}; the one with the shortest path to "
            "the root was kept. To choose, pass --rule shortest or deepest (rule= in Python).",
            stacklevel=3,  # the caller of Taxonomy.from_wordnet
        )
    return grown.parts


def _edges(wordnet: WordNet, synsets: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the edges of the tree.

    A synset is the leaf of its class if it has only one class and nothing below it; otherwise its classes hang below it.
    """
    above = _above(wordnet, synsets.values())
    inner = {parent for parents in above.values() for parent in parents}
    uses = Counter(synsets.values())
    hung = [(offset, name) for name, offset in synsets.items() if offset in inner or uses[offset] > 1]
    labels = {offset: name for name, offset in synsets.items()}
    for offset in inner.union(offset for offset, _ in hung):
        labels[offset] = free_name(wordnet.synset(offset).name, synsets)
    edges = [(labels[parent], labels[offset]) for offset, parents in above.items() for parent in parents]
    return edges + [(labels[offset], name) for offset, name in hung]


def _above(wordnet: WordNet, offsets: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Return the hypernyms of all synsets at or above the given ones, in order of appearance."""
    above: dict[int, tuple[int, ...]] = {}
    waiting = list(offsets)[::-1]
    while waiting:
        offset = waiting.pop()
        if offset not in above:
            above[offset] = wordnet.synset(offset).above
            waiting.extend(reversed(above[offset]))
    return above
