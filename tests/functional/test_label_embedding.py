"""The label embedding network's five terms against 003 Eq. 7-16, and its stops as exact zeros."""

import pytest
import torch
import torch.nn.functional as F

from labelkin.functional import compressed_embedding, embedding_terms
from support import reference
from support.numeric import (
    GAP,
    check_alive,
    check_gradient,
    close,
    gradient,
    positions,
    probabilities,
    renamed,
    samples,
    values,
)

K = 5
TERMS = ("hard", "soft", "similarity", "confidence", "embedding")
FORMS = {
    "paper": {"tau": 2.0, "alpha": 0.3, "p": 1.0},
    "squared hinge": {"tau": 3.0, "alpha": 0.2, "p": 2.0},
    "text": {"tau": 2.0, "alpha": 0.9, "p": 1.0, "absolute": True},
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def inputs(*lead, seed=0):
    return values(seed, *lead, K), values(seed + 1, *lead, K), values(seed + 2, *lead, K), positions(seed + 3, K, *lead)


@every_form
@pytest.mark.parametrize("lead", [(9,), (3, 4)])
def test_terms_are_the_loop(form, lead):
    z1, z2, e, target = inputs(*lead)
    terms = embedding_terms(z1, z2, e, target, **form)
    assert terms.right.any()
    assert not terms.right.all()
    for i in samples(lead):
        expected = reference.embedding_terms(*(x[i].tolist() for x in (z1, z2, e)), int(target[i]), **form)
        for name in TERMS:
            close(getattr(terms, name)[i], expected[name])
        assert bool(terms.right[i]) == expected["right"]


@every_form
def test_terms_of_class_probabilities_are_expected_ones(form):
    z1, z2, _, _ = inputs(9)
    e, target = values(4, K, K), 1.4 * probabilities(5, 9, K)
    terms = embedding_terms(z1, z2, e, target, **form)
    for i in range(9):
        by_class = [
            reference.embedding_terms(z1[i].tolist(), z2[i].tolist(), e[k].tolist(), k, **form) for k in range(K)
        ]
        share = target[i].tolist()
        for name in ("hard", "soft", "similarity", "confidence"):
            close(getattr(terms, name)[i], sum(t * term[name] for t, term in zip(share, by_class, strict=True)))
        taught = sum(t * term["embedding"] for t, term in zip(share, by_class, strict=True) if term["right"])
        close(terms.right[i] * terms.embedding[i], taught)
        close(terms.right[i], sum(t for t, term in zip(share, by_class, strict=True) if term["right"]))


@every_form
def test_a_class_is_its_one_hot_row(form):
    z1, z2, _, target = inputs(9, seed=70)
    e = values(74, K, K)
    hard = embedding_terms(z1, z2, e[target], target, **form)
    soft = embedding_terms(z1, z2, e, F.one_hot(target, K).double(), **form)
    for name in ("hard", "soft", "similarity", "confidence"):
        close(getattr(soft, name), getattr(hard, name))
    close(soft.right, hard.right.double())
    close(soft.right * soft.embedding, hard.right * hard.embedding)


@pytest.mark.long
def test_gradients_for_class_probabilities():
    z1, z2, _, _ = inputs(6, seed=80)
    e, target, form = values(84, K, K), probabilities(85, 6, K), FORMS["paper"]

    def term(name, **given):
        found = embedding_terms(**{"z1": z1, "z2": z2, "e": e, **given}, target=target, **form)
        return found.right * found.embedding if name == "embedding" else getattr(found, name)

    for name in ("hard", "soft"):
        check_gradient(lambda z1, name=name: term(name, z1=z1), z1)
    for name in ("similarity", "confidence"):
        check_gradient(lambda z2, name=name: term(name, z2=z2), z2)
    check_gradient(lambda e: term("embedding", e=e), e)


@pytest.mark.long
@every_form
def test_gradients_with_what_is_stopped_held_constant(form):
    """The soft term moves z1 alone, the embedding term E alone; the other terms have no stop."""
    z1, z2, e, target = inputs(6, seed=10)

    def term(name, **given):
        together = {"z1": z1, "z2": z2, "e": e, **given}
        return getattr(embedding_terms(**together, target=target, **form), name)

    check_gradient(lambda z1: term("hard", z1=z1), z1)
    check_gradient(lambda z1: term("soft", z1=z1), z1)
    check_gradient(lambda z2: term("similarity", z2=z2), z2)
    check_gradient(lambda z2: term("confidence", z2=z2), z2)
    check_gradient(lambda e: term("embedding", e=e), e)


REACHES = {
    "hard": {"z1"},
    "soft": {"z1"},
    "similarity": {"z2"},
    "confidence": {"z2"},
    "embedding": {"e"},
}


@pytest.mark.parametrize("name", TERMS)
def test_each_term_reaches_what_it_should_and_nothing_else(name):
    z1, z2, e, target = inputs(6, seed=20)
    leaves = {"z1": z1.requires_grad_(), "z2": z2.requires_grad_(), "e": e.requires_grad_()}
    terms = embedding_terms(**leaves, target=target, tau=2.0, alpha=0.1, p=1.0)
    grads = torch.autograd.grad(
        getattr(terms, name).sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    for leaf, grad in zip(leaves, grads, strict=True):
        assert (grad != 0).any() == (leaf in REACHES[name]), leaf


def test_the_hinge_lets_go_below_alpha():
    z2 = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 0.1]])  # .91 and .36 for class 2
    y = torch.tensor([2, 2])
    grad = gradient(lambda z: embedding_terms(z, z, z, y, tau=2.0, alpha=0.9, p=1.0).confidence, z2)
    assert (grad[0] != 0).all()
    assert (grad[1] == 0).all()
    pull = gradient(lambda z: embedding_terms(z, z, z, y, tau=2.0, alpha=0.9, p=1.0, absolute=True).confidence, z2)
    assert pull[1, 2] < 0 < pull[0, 2]  # |.| pulls confidence to .9 from both sides


def test_at_tau_1_the_embedding_learns_equation_9():
    z1, z2, e, target = inputs(6, seed=30)
    terms = embedding_terms(z1, z2, e, target, tau=1.0, alpha=0.9, p=1.0)
    close(terms.embedding, F.cross_entropy(e, torch.softmax(z2, -1), reduction="none"))
    close(terms.hard, F.cross_entropy(z1, target, reduction="none"))
    close(terms.similarity, F.cross_entropy(z2, target, reduction="none"))
    close(terms.soft, F.cross_entropy(z1, torch.softmax(e, -1), reduction="none"))


def test_a_sharp_embedding_teaches_the_class_itself():
    z1, z2, _, target = inputs(6, seed=40)
    sharp = 1000 * F.one_hot(target, K).double()
    terms = embedding_terms(z1, z2, sharp, target, tau=2.0, alpha=0.9, p=1.0)
    close(terms.soft, terms.hard)


def test_identity_gives_the_true_class_little():
    """softmax of a row of I at K = 100 leaves 2.7 % to the class (e / (e + 99))."""
    e = torch.eye(100, dtype=torch.float64)
    z1 = torch.zeros(100, 100, dtype=torch.float64)
    z1[0, 0] = 1.0
    soft = embedding_terms(z1, z1, e, torch.arange(100), tau=2.0, alpha=0.9, p=1.0).soft
    rest = torch.logsumexp(z1[0], -1)
    close((rest - soft[0]), 2.718281828459045 / (2.718281828459045 + 99))


def test_order_and_names_mean_nothing():
    z1, z2, e, target = inputs(8, seed=50)
    plain = embedding_terms(z1, z2, e, target, tau=2.0, alpha=0.3, p=1.0)
    rows, _ = renamed(51, 8)
    order, place = renamed(52, K)
    shuffled = embedding_terms(z1[rows], z2[rows], e[rows], target[rows], tau=2.0, alpha=0.3, p=1.0)
    names = embedding_terms(z1[:, order], z2[:, order], e[:, order], place[target], tau=2.0, alpha=0.3, p=1.0)
    for name in TERMS:
        close(getattr(shuffled, name), getattr(plain, name)[rows])
        close(getattr(names, name), getattr(plain, name))
    assert torch.equal(names.right, plain.right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["hard", "soft", "similarity", "embedding"])
def test_alive_200_below(name, dtype):
    """Every term but the hinge, which has nothing to hold where the class has no probability."""
    far = torch.zeros(2, K, dtype=dtype)
    far[:, 3] = -GAP
    target, near = torch.tensor([3, 3]), F.one_hot(torch.tensor([3, 3]), K).to(dtype)

    def term(x):
        # the soft term is taught an E that believes in the class; E far below learns from a z2 that does
        z1, z2, e = {"soft": (x, near, near), "embedding": (near, near, x)}.get(name, (x, x, near))
        return getattr(embedding_terms(z1, z2, e, target, tau=2.0, alpha=0.9, p=1.0), name)

    loss, grad = check_alive(term, far, 3)
    assert (loss > 1).all()
    assert (grad[:, 3] < 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("absolute", [False, True])
def test_the_confidence_term_is_finite_200_below(dtype, absolute):
    far = torch.zeros(2, K, dtype=dtype)
    far[:, 3] = -GAP

    def term(z2):
        return embedding_terms(
            far, z2, far, torch.tensor([3, 3]), tau=2.0, alpha=0.9, p=1.0, absolute=absolute
        ).confidence

    expected = torch.full((2,), 0.9 if absolute else 0.0, dtype=dtype)
    torch.testing.assert_close(term(far), expected)
    assert torch.isfinite(gradient(term, far)).all()


# Compressed.


@pytest.mark.parametrize("lead", [(4,), (2, 3)])
def test_compressed_embedding_is_equation_16(lead):
    a, b, target = values(60, K, 3), values(61, 3, K), positions(62, K, *lead)
    found = compressed_embedding(a, b, target)
    assert (found == 0).any()
    for i in samples(lead):
        close(found[i], reference.compressed_embedding(a.tolist(), b.tolist(), int(target[i])))
    check_gradient(lambda a, b: compressed_embedding(a, b, target), a, b)


def test_compressed_embedding_at_full_rank_is_the_embedding():
    """With B the identity and a non-negative A, E is A."""
    e = values(63, K, K).abs()
    target = positions(64, K, 6)
    close(compressed_embedding(e, torch.eye(K).double(), target), e[target])


def test_compressed_embedding_touches_the_rows_asked_for_alone():
    b = values(66, 3, K).abs()
    grad = gradient(lambda a: compressed_embedding(a, b, torch.tensor([1, 4, 1])), values(65, K, 3).abs())
    assert (grad[[0, 2, 3]] == 0).all()
    assert (grad[[1, 4]] != 0).all()


def test_names_mean_nothing_when_compressed():
    a, b, target = values(67, K, 3), values(68, 3, K), positions(69, K, 6)
    order, place = renamed(70, K)
    close(compressed_embedding(a[order], b[:, order], place[target]), compressed_embedding(a, b, target)[:, order])
