"""The best sequence of words, found a word at a time: greedily, or by beam search.

Both take a callable `step(words, state) -> (log_probs, state)` and know nothing of the model behind it: `words` is (n,) the
last word of each sequence, `log_probs` (n, K) those of the next, and `state` nested tuples of tensors whose first axis is n.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import check_count, check_number

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


class Found(NamedTuple):
    """The sequence found for each of B inputs."""

    words: Tensor  # (B, L) without the end; behind it the end word
    log_probs: Tensor  # (B,) of the whole sequence, its end included


def greedy_search(step: Step, state: Any, *, start: Tensor, end: int, max_length: int) -> Found:
    """The most probable next word each time, until it is `end` or `max_length` words are written (then the end is added)."""
    check_count("max_length", max_length)
    words, total = start, torch.zeros(len(start), device=start.device)
    running = torch.ones(len(start), dtype=torch.bool, device=start.device)
    written: list[Tensor] = []
    for _ in range(max_length):
        log_probs, state = step(words, state)
        words = log_probs.argmax(-1)  # of ties the lowest position
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
    """The sequence of the highest `log p / (words + 1)^length_penalty` among those that a beam of `width` meets.

    The end counts as a word. `length_penalty` 0 is the plain probability, 1 the mean over words. Each step, every sequence of
    the beam is a candidate as it stands, with the end added; the `width` best that go on are kept. Search stops when nothing
    that goes on can become better. A beam as wide as there are sequences is exhaustive search.
    """
    check_count("max_length", max_length)
    check_count("width", width)
    check_number("length_penalty", length_penalty, low=0)
    batch, device = len(start), start.device
    first = torch.arange(batch, device=device).unsqueeze(1) * width  # the row of each input's first sequence
    state = _rows(state, torch.arange(batch, device=device).repeat_interleave(width))
    words = start.repeat_interleave(width)
    total = torch.full((batch, width), -torch.inf, device=device)
    total[:, 0] = 0.0  # all sequences of an input are alike at first
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
    """The best whole sequence of each input so far."""

    score: Tensor  # (B,)
    log_probs: Tensor  # (B,)
    words: Tensor  # (B, L)

    def or_better(self, log_probs: Tensor, prefixes: Tensor, divisor: float) -> "Candidate":
        """With sequences (B, W) that end here in its place where one of them is better."""
        score, place = (log_probs / divisor).max(-1)
        better = score > self.score
        words, length = self.words.clone(), prefixes.shape[-1]  # an earlier one was shorter: behind `length` is the end
        words[:, :length] = prefixes.gather(1, place.view(-1, 1, 1).expand(-1, 1, length)).squeeze(1)
        ended = log_probs.gather(1, place.unsqueeze(1)).squeeze(1)
        return Candidate(
            torch.where(better, score, self.score),
            torch.where(better, ended, self.log_probs),
            torch.where(better.unsqueeze(1), words, self.words),
        )


def _top(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` largest, filled up with impossible ones where there are fewer."""
    found, places = scores.topk(min(width, scores.shape[1]))
    missing = width - found.shape[1]
    if missing:
        found = torch.cat([found, found.new_full((len(found), missing), -torch.inf)], 1)
        places = torch.cat([places, places.new_zeros(len(places), missing)], 1)
    return found, places


def _rows(state: Any, rows: Tensor) -> Any:
    """The rows of every tensor in nested tuples."""
    if isinstance(state, Tensor):
        return state[rows]
    parts = [_rows(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
