"""Searching: against every sequence there is, and against a beam written out as loops."""

import itertools
import math

import pytest
import torch

from labelkin import InputError
from labelkin.translate import beam_search, greedy_search

WORDS, LONGEST, INPUTS, END = 4, 3, 5, 0
NODES = sum(WORDS**n for n in range(LONGEST + 1))


def table(seed: int = 0) -> torch.Tensor:
    """(INPUTS, NODES, WORDS) log-probabilities of the next word after each prefix, a prefix being a node of a tree."""
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(2 * torch.randn(INPUTS, NODES, WORDS, generator=generator, dtype=torch.float64), -1)


def stepper(tables: torch.Tensor):
    """A step whose state is the input and the node; the first word begins the sentence and is no child."""

    def step(words, state):
        inputs, (node, begun) = state
        node = torch.where(begun, node * WORDS + words + 1, node)
        return tables[inputs, node], (inputs, (node, torch.ones_like(begun)))

    inputs = torch.arange(len(tables))
    return step, (inputs, (torch.zeros_like(inputs), torch.zeros_like(inputs, dtype=torch.bool)))


def log_prob(one: torch.Tensor, words: tuple[int, ...]) -> float:
    """Of a whole sequence, its end included."""
    node, total = 0, 0.0
    for word in (*words, END):
        total += float(one[node, word])
        node = node * WORDS + word + 1
    return total


def all_sequences():
    for length in range(LONGEST + 1):
        yield from itertools.product(range(1, WORDS), repeat=length)


def written(row: torch.Tensor) -> tuple[int, ...]:
    words = row.tolist()
    return tuple(words[: words.index(END)] if END in words else words)


def looped_beam(one: torch.Tensor, width: int, penalty: float) -> tuple[int, ...]:
    beam, best = [((), 0.0)], (-math.inf, ())
    for length in range(LONGEST + 1):
        best = max(best, *((log_prob(one, words) / (length + 1) ** penalty, words) for words, _ in beam))
        longer = []
        for words, total in beam:
            node = 0
            for word in words:
                node = node * WORDS + word + 1
            longer += [((*words, word), total + float(one[node, word])) for word in range(1, WORDS)]
        beam = sorted(longer, key=lambda entry: -entry[1])[:width]
    return best[1]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_beam_as_wide_as_there_are_sequences_is_exhaustive_search(penalty: float):
    tables = table()
    step, state = stepper(tables)
    found = beam_search(
        step,
        state,
        start=torch.zeros(INPUTS, dtype=torch.int64),
        end=END,
        max_length=LONGEST,
        width=(WORDS - 1) ** LONGEST,
        length_penalty=penalty,
    )
    for one, words, total in zip(tables, found.words, found.log_probs, strict=True):
        best = max(all_sequences(), key=lambda s: log_prob(one, s) / (len(s) + 1) ** penalty)
        assert written(words) == best
        assert float(total) == pytest.approx(log_prob(one, best), abs=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_beam_is_the_one_written_as_loops(width: int, penalty: float, seed: int):
    tables = table(seed)
    step, state = stepper(tables)
    start = torch.zeros(INPUTS, dtype=torch.int64)
    found = beam_search(step, state, start=start, end=END, max_length=LONGEST, width=width, length_penalty=penalty)
    assert [written(row) for row in found.words] == [looped_beam(one, width, penalty) for one in tables]


def test_a_penalty_prefers_longer_sequences():
    """Four equal steps of .5 have less probability than one step of .4, and more a word."""
    steps = torch.tensor([[0.4, 0.6], [0.1, 0.9], [0.1, 0.9], [0.99, 0.01]]).log()

    def step(words, state):
        return steps[state[0]], (state[0] + 1,)

    def search(penalty):
        begin = (torch.zeros(1, dtype=torch.int64),)
        start = torch.zeros(1, dtype=torch.int64)
        return beam_search(step, begin, start=start, end=0, max_length=3, width=2, length_penalty=penalty).words

    assert search(0.0).tolist() == [[1, 1, 1]]
    assert float(steps[:3, 1].sum() + steps[3, 0]) > float(steps[0, 0])
    steps[1, 1] = math.log(0.5)
    assert search(0.0).tolist() == [[0, 0, 0]]
    assert search(1.0).tolist() == [[1, 1, 1]]


def test_greedy_takes_the_best_next_word():
    tables = table(3)
    step, state = stepper(tables)
    found = greedy_search(step, state, start=torch.zeros(INPUTS, dtype=torch.int64), end=END, max_length=LONGEST)
    for one, words, total in zip(tables, found.words, found.log_probs, strict=True):
        expected, node = [], 0
        while len(expected) < LONGEST and (word := int(one[node].argmax())) != END:
            expected.append(word)
            node = node * WORDS + word + 1
        assert written(words) == tuple(expected)
        assert float(total) == pytest.approx(log_prob(one, tuple(expected)), abs=1e-5)


def test_greedy_may_write_nothing():
    def step(words, state):
        return torch.tensor([[0.9, 0.1]]).log().expand(len(words), 2), state

    found = greedy_search(step, (), start=torch.zeros(2, dtype=torch.int64), end=0, max_length=4)
    assert found.words.shape == (2, 0)
    assert found.log_probs.exp().tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width: expected a whole number of at least 1"),
        ({"max_length": 0}, "max_length: expected"),
        ({"length_penalty": -1.0}, "length_penalty: expected a number in"),
    ],
)
def test_senseless_searches_are_refused(options: dict, message: str):
    step, state = stepper(table())
    with pytest.raises(InputError, match=message):
        beam_search(
            step,
            state,
            start=torch.zeros(INPUTS, dtype=torch.int64),
            end=END,
            **{"max_length": 2, "width": 2, **options},
        )
