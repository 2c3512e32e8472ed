"""Greedy and beam search for the best sequence of words.

Both take a callable `step(words, state) -> (log_probs, state)` and are independent of the model: `words` (n,) is the last word
of each sequence, `log_probs` (n, K) are those of the next word, and `state` is a nested tuple of tensors whose first axis is n.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from labelkin._checks import check_count, check_number
from labelkin.training import Model
from labelkin.translate._corpus import END, UNKNOWN, Language
from labelkin.translate._net import Seq2Seq

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Found(NamedTuple):
    """The sequence found for each of B inputs.

    Attributes:
        words: (B, L) without the end word; padded with it.
        log_probs: (B,) of the whole sequence with its end.
    """

    words: Tensor
    log_probs: Tensor


def greedy_search(step: Step, state: Any, *, start: Tensor, end: int, max_length: int) -> Found:
    """Choose the most probable next word until it is the end word.

    Args:
        step: Callable `step(words, state) -> (log_probs, state)`; see the module.
        state: Initial state.
        start: (B,) the word before the first one.
        end: The end word.
        max_length: Maximum number of words; the end is then added.

    Returns:
        The sequences, and the log-probability of each.

    Example:
        >>> import torch
        >>> from labelkin.translate import greedy_search
        >>> table = torch.tensor([[0.1, 0.9, 0.0], [0.2, 0.0, 0.8], [0.7, 0.2, 0.1]]).log()  # next word, by the last one
        >>> found = greedy_search(lambda words, state: (table[words], state), (), start=torch.tensor([0]), end=0, max_length=5)
        >>> found.words.tolist(), round(float(found.log_probs.exp()), 3)
        ([[1, 2]], 0.504)
    """
    check_count("max_length", max_length)
    words, total = start, torch.zeros(len(start), device=start.device)
    running = torch.ones(len(start), dtype=torch.bool, device=start.device)
    written: list[Tensor] = []
    for _ in range(max_length):
        log_probs, state = step(words, state)
        words = log_probs.argmax(-1)  # the lowest position wins a tie
        best = log_probs.gather(-1, words.unsqueeze(-1)).squeeze(-1)
        total = total + torch.where(running, best, 0.0)
        running = running & (words != end)
        words = torch.where(running, words, end)
        if not bool(running.any()):
            break
        written.append(words)
    else:
        log_probs, _ = step(words, state)
        total = total + torch.where(running, log_probs[:, end], 0.0)
    return Found(torch.stack(written, 1) if written else start.new_empty(len(start), 0), total)


def beam_search(
    step: Step, state: Any, *, start: Tensor, end: int, max_length: int, width: int = 10, length_penalty: float = 0.0
) -> Found:
    """Find the sequence with the highest `log p / (words + 1)^length_penalty` among those that a beam of `width` visits.

    In each step, every sequence of the beam becomes a candidate by adding the end word, and the `width` best continuations are
    kept. The search stops when no continuation can beat the best candidate. A beam as wide as the number of sequences is an
    exhaustive search.

    Args:
        step: Callable `step(words, state) -> (log_probs, state)`; see the module.
        state: Initial state.
        start: (B,) the word before the first one.
        end: The end word; it counts as a word.
        max_length: Maximum number of words before the end.
        width: Number of sequences that are kept in each step.
        length_penalty: 0 compares plain probabilities, 1 the mean log-probability per word.

    Returns:
        The sequences, and the log-probability of each.

    Example:
        >>> import torch
        >>> from labelkin.translate import beam_search
        >>> table = torch.tensor([[0.1, 0.5, 0.4], [0.2, 0.4, 0.4], [0.9, 0.1, 0.0]]).log()  # next word, by the last one
        >>> step = lambda words, state: (table[words], state)
        >>> found = beam_search(step, (), start=torch.tensor([0]), end=0, max_length=3, width=2)
        >>> found.words.tolist(), round(float(found.log_probs.exp()), 3)
        ([[2, 0, 0]], 0.36)
    """
    check_count("max_length", max_length)
    check_count("width", width)
    check_number("length_penalty", length_penalty, low=0)
    batch, device = len(start), start.device
    first = torch.arange(batch, device=device).unsqueeze(1) * width  # the row of each input's first sequence
    state = _rows(state, torch.arange(batch, device=device).repeat_interleave(width))
    words = start.repeat_interleave(width)
    total = torch.full((batch, width), -torch.inf, device=device)
    total[:, 0] = 0.0  # all sequences of an input are equal at first
    prefixes = start.new_empty(batch, width, 0)
    best = Candidate(
        torch.full_like(total[:, 0], -torch.inf), total[:, 0].clone(), start.new_full((batch, max_length), end)
    )
    for length in range(max_length + 1):
        log_probs, state = step(words, state)
        log_probs = log_probs.to(total.dtype).view(batch, width, -1)
        best = best.or_better(total + log_probs[:, :, end], prefixes, (length + 1) ** length_penalty)
        if length == max_length:
            break
        going_on = total.unsqueeze(-1) + log_probs
        going_on[:, :, end] = -torch.inf
        total, places = _top(going_on.flatten(1), width)
        if not bool((total[:, 0] / (max_length + 1) ** length_penalty > best.score).any()):
            break
        parents, chosen = places // log_probs.shape[-1], places % log_probs.shape[-1]
        state = _rows(state, (first + parents).flatten())
        words = chosen.flatten()
        kept = prefixes.gather(1, parents.unsqueeze(-1).expand(-1, -1, length))
        prefixes = torch.cat([kept, chosen.unsqueeze(-1)], -1)
    return Found(best.words, best.log_probs)


class Candidate(NamedTuple):
    """The best complete sequence of each input so far."""

    score: Tensor  # (B,)
    log_probs: Tensor  # (B,)
    words: Tensor  # (B, L)

    def or_better(self, log_probs: Tensor, prefixes: Tensor, divisor: float) -> "Candidate":
        """Replace the best sequences by better ones among the candidates (B, W) that end at this step."""
        score, place = (log_probs / divisor).max(-1)
        better = score > self.score
        words, length = (
            self.words.clone(),
            prefixes.shape[-1],
        )  # earlier sequences are shorter, so the rest is the end word
        words[:, :length] = prefixes.gather(1, place.view(-1, 1, 1).expand(-1, 1, length)).squeeze(1)
        ended = log_probs.gather(1, place.unsqueeze(1)).squeeze(1)
        return Candidate(
            torch.where(better, score, self.score),
            torch.where(better, ended, self.log_probs),
            torch.where(better.unsqueeze(1), words, self.words),
        )


def _top(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the `width` largest scores and their positions, padded with -inf if there are fewer."""
    found, places = scores.topk(min(width, scores.shape[1]))
    missing = width - found.shape[1]
    if missing:
        found = torch.cat([found, found.new_full((len(found), missing), -torch.inf)], 1)
        places = torch.cat([places, places.new_zeros(len(places), missing)], 1)
    return found, places


def _rows(state: Any, rows: Tensor) -> Any:
    """Select rows of every tensor in nested tuples."""
    if isinstance(state, Tensor):
        return state[rows]
    parts = [_rows(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)


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
