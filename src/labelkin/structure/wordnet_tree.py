"""Class names to the part of WordNet's noun hierarchy above them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from labelkin._checks import InputError, check_names, listed, near
from labelkin.structure.build import Parts, free_name
from labelkin.structure.graph import Rule, from_edges
from labelkin.structure.wordnet import WordNet

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
