"""003 Eq. 17: cross entropy to the class plus cross entropy to the softmax of a given, frozen embedding."""

import math

import pytest
import torch

from labelkin import InputError, LabelEmbedding, PretrainedLabelEmbedding
from support import reference


def test_the_loss_is_both_terms():
    draw = torch.Generator().manual_seed(0)
    embedding, logits = torch.randn(4, 4, generator=draw), torch.randn(6, 4, generator=draw)
    target = torch.tensor([0, 3, 1, 1, 2, 0])
    expected = 0.0
    for row, y in zip(logits.tolist(), target.tolist(), strict=True):
        probs, soft = reference.softmax(row), reference.softmax(embedding[y].tolist())
        expected -= math.log(probs[y]) + sum(s * math.log(p) for s, p in zip(soft, probs, strict=True))
    objective = PretrainedLabelEmbedding(classes=4, embedding=embedding)
    assert objective.loss(logits, target).item() == pytest.approx(expected / 6, rel=1e-5)


def test_an_embedding_learned_in_one_run_serves_the_next_and_stays_frozen():
    first = LabelEmbedding(classes=3, features=2)
    second = PretrainedLabelEmbedding(classes=3, features=2, embedding=first.label_vectors())
    assert torch.equal(second.label_vectors(), torch.eye(3))
    assert set(dict(second.named_parameters())) == {"head.weight", "head.bias"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [(torch.zeros(3, 4), "expected a square matrix"), (torch.full((3, 3), float("nan")), "expected finite numbers")],
)
def test_a_wrong_embedding_is_refused(wrong: torch.Tensor, sentence: str):
    with pytest.raises(InputError, match=f"embedding: {sentence}"):
        PretrainedLabelEmbedding(classes=3, embedding=wrong)
