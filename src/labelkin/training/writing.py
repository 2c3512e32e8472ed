"""Sentences written by a trained model."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from labelkin._checks import check_count, check_number
from labelkin.data.corpora import END, UNKNOWN, Language
from labelkin.decide.search import Found, beam_search, greedy_search
from labelkin.models.seq2seq import Seq2Seq
from labelkin.training.model import Model

ROWS = 1024  # sequences decoded at once, of all beams together
SENTENCES = 256  # padded to one length


class Search(NamedTuple):
    """How sentences are written: greedily with `beam` 1; `length_penalty` is `beam_search`'s."""

    beam: int = 10
    length_penalty: float = 0.0

    def check(self) -> "Search":
        check_count("beam", self.beam)
        check_number("length_penalty", self.length_penalty, low=0)
        return self


@torch.no_grad()
def write(model: Model, source: Tensor, lengths: Tensor, search: Search) -> list[list[int]]:
    """The words, without the end, that the model writes for source sentences (n, S); never the unknown word.

    At most ten words more than twice the source are written.
    """
    found: list[list[int]] = []
    size = max(1, ROWS // search.beam)
    for sentences, own in zip(torch.split(source, size), torch.split(lengths, size), strict=True):
        most = 2 * int(own.max()) + 10
        words = _search(model, sentences, own, search, most).words.tolist()
        found += [sentence[: sentence.index(END)] if END in sentence else sentence for sentence in words]
    return found


def _search(model: Model, source: Tensor, lengths: Tensor, search: Search, most: int) -> Found:
    objective, net = model.objective, cast(Seq2Seq, model.backbone)

    def step(words: Tensor, state: Any) -> tuple[Tensor, Any]:
        features, state = net.step(words, state)
        log_probs = objective.log_probs(objective(features))
        log_probs[:, UNKNOWN] = -torch.inf
        return log_probs, state

    state = net.encode(source, lengths)
    start = torch.full_like(source[:, 0], END)
    if search.beam == 1:
        return greedy_search(step, state, start=start, end=END, max_length=most)
    return beam_search(
        step, state, start=start, end=END, max_length=most, width=search.beam, length_penalty=search.length_penalty
    )


def translate_texts(
    model: Model, source: Language, target: Language, texts: Sequence[str], search: Search
) -> list[str]:
    """A sentence for each, in order; those of like length are written together."""
    device = next(model.parameters()).device
    encoded = [[*source.encode(text), END] for text in texts]
    order = sorted(range(len(texts)), key=lambda place: len(encoded[place]))
    found: dict[int, str] = {}
    for first in range(0, len(order), SENTENCES):
        rows = order[first : first + SENTENCES]
        lengths = torch.tensor([len(encoded[row]) for row in rows])
        padded = torch.full((len(rows), int(lengths.max())), END)
        for place, row in enumerate(rows):
            padded[place, : len(encoded[row])] = torch.tensor(encoded[row])
        for row, words in zip(rows, write(model, padded.to(device), lengths, search), strict=True):
            found[row] = target.join(target.decode(words))
    return [found[place] for place in range(len(texts))]
