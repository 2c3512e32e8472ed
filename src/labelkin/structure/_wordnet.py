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
    """A set of synonyms; `name` is that of its first word, as in `car.n.01`, and `above` its hypernyms' offsets."""

    name: str
    words: tuple[str, ...]
    above: tuple[int, ...]


class WordNet:
    """The noun hierarchy, hypernyms and instance hypernyms alike; a noun may have several.

    `folder` holds `index.noun` and `data.noun` (or is NLTK's `wordnet.zip`). Without it they are looked for in
    `WNSEARCHDIR`, in `dict` under `WNHOME`, where Debian's `wordnet-base` puts them, and in NLTK's data folders.

    A sense is `cat.n.01`, the first of the senses that the index lists for the word cat, or a word alone, which means
    its first sense; upper case and blanks are as good as lower case and underscores.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._files = _found(None if folder is None else Path(folder))
        self._synsets: dict[int, Synset] = {}

    def sense(self, sense: str) -> str:
        """The name of the synset meant: `automobile` and `automobile.n.01` are both `car.n.01`."""
        return self.synset(self.offset(sense)).name

    def hypernyms(self, sense: str) -> tuple[str, ...]:
        """The synsets right above, in the database's order; none for the top."""
        return tuple(self.synset(offset).name for offset in self.synset(self.offset(sense)).above)

    def shortest_path(self, a: str, b: str) -> int:
        """Edges on the shortest way from one sense up to a common hypernym and down to the other."""
        return _shortest(self._steps_up(self.offset(a)), self._steps_up(self.offset(b)), a, b)

    def distances(self, senses: Sequence[str]) -> npt.NDArray[np.float64]:
        """K x K: the shortest path between every two senses, the reference distance of 001's Eq. 4."""
        ways = [self._steps_up(self.offset(sense)) for sense in senses]
        table = np.zeros((len(ways), len(ways)))
        for i in range(len(ways)):
            for j in range(i):
                table[i, j] = table[j, i] = _shortest(ways[i], ways[j], senses[i], senses[j])
        return table

    def offset(self, sense: str) -> int:
        """The byte offset in `data.noun` by which the database knows a sense."""
        check_names("sense", [sense])
        written = sense.strip().lower().replace(" ", "_")
        found = _SENSE.fullmatch(written)
        lemma, number = (found["lemma"], int(found["number"])) if found else (written, 1)
        offsets = self._offsets(lemma)
        if not offsets:
            raise InputError(f"WordNet has no noun {lemma!r}.{near(lemma, self._resembling(lemma))}")
        if not 1 <= number <= len(offsets):
            raise InputError(f"WordNet has no {sense!r}: the senses of {lemma!r} go from 1 to {len(offsets)}.")
        return offsets[number - 1]

    def synset(self, offset: int) -> Synset:
        """What stands at an offset of `data.noun`."""
        if offset not in self._synsets:
            self._synsets[offset] = self._read(offset)
        return self._synsets[offset]

    def _read(self, offset: int) -> Synset:
        line = self._data[offset : self._data.find(b"\n", offset)]
        fields = line.partition(b" | ")[0].split()
        if not fields or fields[0] != b"%08d" % offset:
            raise InputError(f"{self._files}: data.noun and index.noun are not of one database (at offset {offset}).")
        count = int(fields[3], 16)
        words = tuple(word.decode() for word in fields[4 : 4 + 2 * count : 2])
        pointers = fields[5 + 2 * count :]
        above = [int(pointers[i + 1]) for i in range(0, len(pointers) - 3, 4) if pointers[i] in _HYPERNYMS]
        lemma = words[0].lower()
        return Synset(f"{lemma}.n.{self._offsets(lemma).index(offset) + 1:02d}", words, tuple(dict.fromkeys(above)))

    def _steps_up(self, offset: int) -> dict[int, int]:
        """Everything above a synset, itself included, with the least number of steps."""
        steps = {offset: 0}
        reached = [offset]
        for node in reached:  # grows as it is walked
            for parent in self.synset(node).above:
                if parent not in steps:
                    steps[parent] = steps[node] + 1
                    reached.append(parent)
        return steps

    def _offsets(self, lemma: str) -> list[int]:
        fields = self._index.get(lemma.encode(), b"").split()
        return [int(field) for field in fields[len(fields) - int(fields[1]) :]] if fields else []

    def _resembling(self, lemma: str) -> Iterator[str]:
        """Lemmas worth a closer look: comparing with all 118,000 takes seconds."""
        for key in self._index:
            if abs(len(key) - len(lemma)) <= 2:
                other = key.decode()
                if other[0] == lemma[0] or other[-3:] == lemma[-3:]:
                    yield other

    @cached_property
    def _index(self) -> dict[bytes, bytes]:
        """The rest of the index line by lemma; the licence on top is indented."""
        lines = (self._files / "index.noun").read_bytes().splitlines()
        split = (line.partition(b" ") for line in lines if not line.startswith(b" "))
        return {lemma: rest for lemma, _, rest in split}

    @cached_property
    def _data(self) -> bytes:
        return (self._files / "data.noun").read_bytes()


def _shortest(left: dict[int, int], right: dict[int, int], a: str, b: str) -> int:
    ways = [steps + right[node] for node, steps in left.items() if node in right]
    if not ways:
        raise InputError(f"WordNet: nothing stands above both {a!r} and {b!r} in this database.")
    return min(ways)


def _found(given: Path | None) -> Path | zipfile.Path:
    for place in [given] if given else _places():
        folder = zipfile.Path(place) / "wordnet" if place.suffix == ".zip" and place.is_file() else place
        if all((folder / name).is_file() for name in ("index.noun", "data.noun")):
            return folder
    if given:
        raise InputError(f"{given}: expected a WordNet folder with index.noun and data.noun, or NLTK's wordnet.zip.")
    raise InputError(
        "WordNet's files index.noun and data.noun were not found: install the Debian package wordnet-base, or name "
        "their folder in WNSEARCHDIR (or the folder above `dict` in WNHOME, or an NLTK data folder in NLTK_DATA)."
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
    check_names("names", names, least=2)
    senses = senses or {}
    for name in senses:
        if name not in names:
            raise InputError(f"senses: {name!r} is none of the names.{near(name, names)}")
    wordnet = database if isinstance(database, WordNet) else WordNet(database)
    synsets = {name: wordnet.offset(senses.get(name, name)) for name in names}
    grown = from_edges(_edges(wordnet, synsets), rule=rule or "shortest")
    if grown.chosen and rule is None:
        warnings.warn(
            f"WordNet has more than one parent for {listed(grown.chosen, limit=20)}; rule='shortest' kept the one with "
            "the shortest way to the root. Give rule='shortest' or rule='deepest' to choose.",
            stacklevel=3,  # the caller of Taxonomy.from_wordnet
        )
    return grown.parts


def _edges(wordnet: WordNet, synsets: Mapping[str, int]) -> list[tuple[str, str]]:
    """A synset stands for its class if it has one class alone and nothing below; else its classes hang under it."""
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
    """The hypernyms of every synset at or above those given, in order of appearance."""
    above: dict[int, tuple[int, ...]] = {}
    waiting = list(offsets)[::-1]
    while waiting:
        offset = waiting.pop()
        if offset not in above:
            above[offset] = wordnet.synset(offset).above
            waiting.extend(reversed(above[offset]))
    return above
