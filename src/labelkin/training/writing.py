"""Decode sentences with a trained sequence-to-sequence model."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from labelkin._checks import check_count, check_number
from labelkin.data.corpora import END, UNKNOWN, Language
from labelkin.decide.search import Found, beam_search, greedy_search
from labelkin.models.seq2seq import Seq2Seq
from labelkin.training.model import Model

ROWS = 1024  # sequences decoded at once, counting all beams
SENTENCES = 256  # sentences padded to one length


class Search(NamedTuple):
    """Options of the decoder.

    Attributes:
        beam: The beam width; 1 decodes greedily.
        length_penalty: As in `beam_search`.

    >>> Search(beam=4).check()
    Search(beam=4, length_penalty=0.0)
    """

    beam: int = 10
    length_penalty: float = 0.0

    def check(self) -> "Search":
        """Return these options; raises `InputError` if one is out of range."""
        check_count("beam", self.beam)
        check_number("length_penalty", self.length_penalty, low=0)
        return self


@torch.no_grad()
def write(model: Model, source: Tensor, lengths: Tensor, search: Search) -> list[list[int]]:
    """Decode source sentences.

    A decoded sentence has at most 2 L + 10 words for a source of L words, and never contains the unknown word.

    Args:
        model: The trained model.
        source: (n, S) the words of the source sentences.
        lengths: (n,) their lengths.
        search: The decoder's options.

    Returns:
        The words of each sentence, without the end symbol.
    """
    found: list[list[int]] = []
    size = max(1, ROWS // search.beam)
    for sentences, own in zip(torch.split(source, size), torch.split(lengths, size), strict=True):
        most = 2 * int(own.max()) + 10
        words = _search(model, sentences, own, search, most).words.tolist()
        found += [sentence[: sentence.index(END)] if END in sentence else sentence for sentence in words]
    return found


def _search(model: Model, source: Tensor, lengths: Tensor, search: Search, most: int) -> Found:
    """Decode one batch with at most `most` words for each sentence."""
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
    """Translate texts, in order; texts of similar length are decoded together.

    Args:
        model: The trained model.
        source: The language of the texts.
        target: The language to translate into.
        texts: The texts.
        search: The decoder's options.
    """
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
