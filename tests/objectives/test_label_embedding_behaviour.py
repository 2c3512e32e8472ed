"""What the label embedding network does from step to step (003), and where its gradients stop."""

import copy

import pytest
import torch

from labelkin import CompressedLabelEmbedding, LabelEmbedding
from labelkin.objectives import TwoHeads
from labelkin.objectives._label_embedding_chunked import in_chunks
from support import reference
from support.real import build_on_digits, digits
from support.worlds import default_dtype, generator

Y = torch.tensor([0, 1, 2, 3, 0, 1])


def embedding(kind=LabelEmbedding, **options):
    torch.manual_seed(0)
    with default_dtype(torch.float64):
        return kind(classes=4, **options)


def outputs() -> TwoHeads:
    z1, z2 = torch.randn(2, 6, 4, generator=generator(0), dtype=torch.float64)
    z2[:4] += 5 * torch.eye(4)[Y[:4]]
    return TwoHeads(z1.requires_grad_(), z2.requires_grad_())


def gradient(loss, at):
    return torch.autograd.grad(loss, at, retain_graph=True, allow_unused=True)[0]


@pytest.mark.parametrize("preset", ["paper", "released", "released-text"])
def test_the_loss_is_the_loop(preset: str):
    objective, heads = embedding(preset=preset, start_after=0), outputs()
    rows = objective.embedding[Y].tolist()
    expected = reference.label_embedding(heads.z1.tolist(), heads.z2.tolist(), rows, Y.tolist(), preset)
    assert objective.loss(heads, Y).item() == pytest.approx(expected, rel=1e-12)


def test_released_text_divides_the_embedding_term_by_all_tokens():
    """One token of four is right: the released code gives a quarter of the term of that token."""
    heads, target = TwoHeads(*torch.eye(4, dtype=torch.float64).expand(2, 4, 4)), torch.tensor([0, 0, 0, 0])
    text = embedding(preset="released-text").loss_terms(heads, target).terms["embedding"]
    paper = embedding().loss_terms(heads, target).terms["embedding"]
    torch.testing.assert_close(text, paper / 4)


@pytest.mark.parametrize("preset", ["paper", "released", "released-text"])
@pytest.mark.parametrize("kind", [LabelEmbedding, CompressedLabelEmbedding])
def test_a_loss_in_chunks_has_the_gradients_of_the_whole(kind, preset: str, monkeypatch: pytest.MonkeyPatch):
    objective = embedding(kind, features=7, preset=preset, start_after=0)
    features = torch.randn(6, 7, generator=generator(1), dtype=torch.float64)
    y = objective(features).z2.argmax(-1)
    y[:3] = (y[:3] + 1) % 4
    whole = objective.loss(objective(features), y)
    expected = torch.autograd.grad(whole, list(objective.parameters()))
    monkeypatch.setattr("labelkin.objectives._label_embedding_chunked.CHUNK", 8)
    found = in_chunks(objective, features, y).total
    torch.testing.assert_close(found, whole)
    torch.testing.assert_close(torch.autograd.grad(found, list(objective.parameters())), expected)


def test_weights_is_the_former_name_of_preset():
    assert embedding(weights="released").preset == "released"
    assert embedding(CompressedLabelEmbedding, weights="released").preset == "released"
    assert embedding(preset="released").weights == "released"
    assert "weights" not in LabelEmbedding.free_options()


@pytest.mark.parametrize("start_after", [0, 1, 3])
def test_the_embedding_teaches_from_the_update_it_is_told(start_after: int):
    objective = embedding(start_after=start_after)
    for update in range(5):
        loss = objective.loss_terms(outputs(), Y)
        parts = loss.terms
        without = parts["hard"] + parts["similarity"] + parts["confidence"] + parts["embedding"]
        expected = without + parts["soft"] if update >= start_after else without
        torch.testing.assert_close(loss.total, expected)
    assert int(objective.updates) == 5


def test_released_text_starts_after_20000_updates_and_evaluation_counts_nothing():
    objective = embedding(preset="released-text")
    objective.updates.fill_(19_999)
    late, later = (objective.loss_terms(outputs(), Y) for _ in range(2))
    torch.testing.assert_close(later.total, late.total + late.terms["soft"])
    objective.eval()
    objective.loss(outputs(), Y)
    assert int(objective.updates) == 20_001


@pytest.mark.parametrize("kind", [LabelEmbedding, CompressedLabelEmbedding])
def test_the_hidden_layer_never_hears_of_the_similarity_head(kind):
    objective = embedding(kind, features=7)
    features = torch.randn(6, 7, generator=generator(1), dtype=torch.float64).requires_grad_()
    heads = objective(features)
    assert gradient(heads.z2.sum(), features) is None
    terms = objective.loss_terms(heads, Y).terms
    for name in ("similarity", "confidence", "embedding"):
        found = gradient(terms[name], features)
        assert found is None or not found.any(), name
    chunked = objective.loss_from_features(features, Y).terms
    torch.testing.assert_close(gradient(chunked["hard"], features), gradient(terms["hard"], features))
    for name in ("similarity", "confidence", "embedding"):
        found = gradient(chunked[name], features)
        assert found is None or not found.any(), name


def test_the_two_stops_between_the_embedding_and_the_heads():
    objective, heads = embedding(), outputs()
    terms = objective.loss_terms(heads, Y).terms
    table = objective.embedding
    reaches = {
        name: tuple(g is not None and bool(g.any()) for g in (gradient(term, at) for at in (*heads, table)))
        for name, term in terms.items()
    }
    assert reaches == {
        "hard": (True, False, False),
        "soft": (True, False, False),
        "similarity": (False, True, False),
        "confidence": (False, True, False),
        "embedding": (False, False, True),
    }


def test_the_embedding_learns_from_right_samples_alone_and_not_at_all_without_any():
    objective, heads = embedding(), outputs()
    right = heads.z2.argmax(-1) == Y
    assert 0 < int(right.sum()) < 6
    objective.loss(heads, Y).backward()
    kept = copy.deepcopy(objective)
    kept.zero_grad()
    chosen = TwoHeads(*(part.detach()[right] for part in heads))
    kept.loss(chosen, Y[right]).backward()
    torch.testing.assert_close(objective.embedding.grad, kept.embedding.grad)
    kept.zero_grad()
    wrong = TwoHeads(chosen.z1, -chosen.z2)
    terms = kept.loss_terms(wrong, Y[right]).terms
    assert terms["embedding"] == 0
    terms["embedding"].backward()
    assert not kept.embedding.grad.any()


@pytest.mark.long
def test_an_embedding_learned_on_digits_is_no_longer_the_identity():
    objective = build_on_digits("label-embedding")
    features, target = digits()
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.02)
    for _ in range(80):
        optimizer.zero_grad()
        objective.loss(objective(features), target).backward()
        optimizer.step()
    learned = objective.label_vectors()
    assert (learned.argmax(-1) == torch.arange(10)).all()
    others = learned.masked_select(~torch.eye(10, dtype=torch.bool))
    assert others.std() > 0.05


def in_small_chunks(objective: LabelEmbedding, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    monkeypatch.setattr("labelkin.objectives._label_embedding_chunked.CHUNK", 8)
    features = torch.randn(6, 7, generator=generator(1), dtype=torch.float64)
    return in_chunks(objective, features, torch.arange(6) % 4).total


def test_the_closed_form_leaves_the_terms_of_a_subclass_alone(monkeypatch: pytest.MonkeyPatch):
    class Doubled(LabelEmbedding):
        def _sample_terms(self, outputs, batch):
            terms = super()._sample_terms(outputs, batch)
            return terms._replace(hard=2 * terms.hard)

    plain, doubled = embedding(features=7), embedding(Doubled, features=7)
    assert in_small_chunks(doubled, monkeypatch) > 1.1 * in_small_chunks(plain, monkeypatch)


def test_the_closed_form_leaves_heads_with_hooks_alone(monkeypatch: pytest.MonkeyPatch):
    objective = embedding(features=7)
    plain = in_small_chunks(objective, monkeypatch)
    objective.head.register_forward_hook(lambda module, given, output: 3 * output)
    assert not torch.isclose(in_small_chunks(objective, monkeypatch), plain)
