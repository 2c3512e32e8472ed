"""Learned mixing: 004 Eq. 10 and 11 as printed, and parametrisations that cannot leave their constraints."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin.functional import (
    bounded_eps,
    bounded_eps_inverse,
    class_penalty,
    led_matrix,
    log_barrier,
    matrix_penalty,
)
from labelkin.functional._mixing import largest_share
from support import reference
from support.numeric import check_gradient, close, gradient, probabilities, relation, renamed, values

K = 5
MARGIN = torch.tensor([0.0, 0.1, 0.3, 0.05, 0.2], dtype=torch.float64)
FORCES = {"alpha": 0.7, "beta": 0.2, "gamma": 0.3}


def inside(seed):
    """eps within (0, .5), away from the kinks."""
    return 0.05 + 0.4 * torch.sigmoid(values(seed, K))


# Eq. 10.


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("scale", [0.2, 3.0], ids=["near", "far outside [0, 1]"])
def test_class_penalty_is_equation_10(p, scale):
    """Also for a class without kin, whose row of the relation sums to 0."""
    eps, kin = values(0, K, scale=scale), relation(1, K, isolated=[3])
    expected = reference.class_penalty(eps.tolist(), kin.tolist(), p=p, **FORCES)
    close(class_penalty(eps, kin.sum(-1), p=p, **FORCES), expected)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_class_penalty_gradient(p):
    check_gradient(lambda eps: class_penalty(eps, relation(2, K).sum(-1), p=p, **FORCES), inside(3))
    check_gradient(lambda eps: class_penalty(eps, relation(2, K).sum(-1), p=p, **FORCES), inside(3) - 1.7)


def test_the_alpha_term_is_zero_between_0_and_1_and_only_there():
    eps = torch.linspace(-1, 2, 31, dtype=torch.float64)
    for x in eps:
        paid = class_penalty(x.expand(K), torch.ones(K).double(), alpha=1.0, beta=0.0, gamma=0.0, p=2.0)
        assert (paid > 1e-6) == bool((x < -0.01) | (x > 1.01)), float(x)


@pytest.mark.parametrize(("beta", "gamma"), [(1e-3, 1e-3), (0.3, 0.1), (0.0, 1.0), (1.0, 0.0)])
def test_the_pulls_of_p_2_meet_at_half_beta_over_their_sum(beta, gamma):
    rest = torch.full((K,), 0.5 * beta / (beta + gamma), dtype=torch.float64)

    def penalty(eps):
        return class_penalty(eps, torch.ones(K).double(), alpha=1.0, beta=beta, gamma=gamma, p=2.0)

    lowest = penalty(rest)
    for step in (-0.01, 0.01):
        assert penalty((rest + step).clamp(0, 1)) > lowest - 1e-15
    slope = gradient(lambda eps: penalty(eps), rest.clamp(1e-12, 1))
    close(slope, torch.zeros(K))


def test_no_force_no_penalty():
    eps, matrix = values(4, K), values(5, K, K)
    assert class_penalty(eps, torch.ones(K).double(), alpha=0.0, beta=0.0, gamma=0.0, p=2.0) == 0
    assert matrix_penalty(matrix, MARGIN, alpha=0.0, beta=0.0, gamma=0.0, eta=0.0, p=2.0) == 0


# Eq. 11.


@pytest.mark.parametrize("hinge", [False, True])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_matrix_penalty_is_equation_11(p, hinge):
    matrix = probabilities(6, K, K) + values(7, K, K, scale=0.1)
    forces = {**FORCES, "eta": 0.9, "p": p, "hinge": hinge}
    expected = reference.matrix_penalty(matrix.tolist(), MARGIN.tolist(), **forces)
    close(matrix_penalty(matrix, MARGIN, **forces), expected)
    check_gradient(lambda e: matrix_penalty(e, MARGIN, **forces), 0.1 + 0.8 * torch.sigmoid(values(8, K, K)))


def led_evenly(diagonal):
    """Rows that sum to 1 with the given diagonal and the rest shared evenly."""
    rest = (1 - diagonal) / (K - 1)
    matrix = rest.unsqueeze(-1).expand(K, K).clone()
    matrix[range(K), range(K)] = diagonal
    return matrix


def eta_term(matrix, hinge=False):
    return matrix_penalty(matrix, MARGIN, alpha=0.0, beta=0.0, gamma=0.0, eta=1.0, p=2.0, hinge=hinge)


def test_the_eta_term_holds_the_diagonal_at_one_value():
    rest = (1 + (K - 1) * MARGIN) / K
    close(eta_term(led_evenly(rest)), 0.0)
    close(gradient(eta_term, led_evenly(rest)), torch.zeros(K, K))
    for away in (-0.02, 0.02):
        # (k-1)(e - c) - (1 - e) is k times the distance from that value
        close(eta_term(led_evenly(rest + away)), K * (K * away) ** 2)
    close(eta_term(led_evenly(rest + 0.02), hinge=True), 0.0)
    close(eta_term(led_evenly(rest - 0.02), hinge=True), K * (K * 0.02) ** 2)


def test_names_of_classes_mean_nothing():
    order, _ = renamed(9, K)
    eps, kin, matrix = inside(10), relation(11, K, isolated=[0]), probabilities(12, K, K)
    close(
        class_penalty(eps[order], kin[order][:, order].sum(-1), p=2.0, **FORCES),
        class_penalty(eps, kin.sum(-1), p=2.0, **FORCES),
    )
    forces = {**FORCES, "eta": 0.9, "p": 2.0}
    close(
        matrix_penalty(matrix[order][:, order], MARGIN[order], **forces),
        matrix_penalty(matrix, MARGIN, **forces),
    )
    theta, share = values(13, K, K), values(14, K)
    close(
        led_matrix(theta[order][:, order], share[order], MARGIN[order]),
        led_matrix(theta, share, MARGIN)[order][:, order],
    )


# Parametrisations.


def test_bounded_eps_is_half_a_sigmoid():
    theta = values(15, 20, scale=5.0)
    close(bounded_eps(theta), [0.5 * reference.sigmoid(x) for x in theta.tolist()])
    check_gradient(bounded_eps, theta)
    close(bounded_eps(bounded_eps_inverse(torch.linspace(0.001, 0.499, 50).double())), torch.linspace(0.001, 0.499, 50))


def test_the_ends_of_eps_are_moved_inside():
    ends = bounded_eps_inverse(torch.tensor([0.0, 0.5], dtype=torch.float64))
    assert torch.isfinite(ends).all()
    close(bounded_eps(ends), [1e-4, 0.5 - 1e-4])


def test_led_matrix_is_the_loop():
    theta, share = values(16, K, K), values(17, K)
    rows = [reference.led_row(theta[i].tolist(), float(share[i]), float(MARGIN[i]), i) for i in range(K)]
    close(led_matrix(theta, share, MARGIN), rows)
    check_gradient(lambda theta, share: led_matrix(theta, share, MARGIN), theta, share)
    assert (gradient(lambda t: led_matrix(t, share, MARGIN)[:, :2].square(), theta).diagonal() == 0).all()


def test_an_entry_of_minus_infinity_stays_zero():
    theta = values(18, K, K)
    theta[0, 2] = -math.inf
    assert led_matrix(theta, values(19, K), MARGIN)[0, 2] == 0
    assert torch.isfinite(gradient(lambda t: led_matrix(t, values(19, K), MARGIN).square(), theta)).all()


@pytest.mark.long
@given(
    k=st.integers(2, 9),
    seed=st.integers(0, 2**16),
    scale=st.sampled_from([0.1, 3.0, 30.0]),
    margin=st.floats(0, 0.95),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=60, deadline=None)
def test_led_matrix_leads_whatever_theta(k, seed, scale, margin, dtype):
    theta, share = (values(seed + i, *shape).sign() * scale for i, shape in enumerate([(k, k), (k,)]))
    check_led(theta.to(dtype), share.to(dtype), torch.full((k,), margin, dtype=dtype))
    check_led(values(seed + 2, k, k, scale=scale).to(dtype), share.to(dtype), torch.full((k,), margin, dtype=dtype))


def check_led(theta, share, margin):
    matrix = led_matrix(theta, share, margin)
    rounding = 4 * torch.finfo(matrix.dtype).eps
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(margin), atol=rounding, rtol=0)
    assert (matrix >= 0).all()
    lead = matrix.diagonal() - (matrix - torch.diag(matrix.diagonal())).max(-1).values
    assert (lead >= margin - rounding).all()
    grad = gradient(lambda t: led_matrix(t, share, margin).square(), theta)
    assert torch.isfinite(grad).all()


def test_the_largest_share_is_the_most_a_row_can_give():
    """A little more, and the strongest rival comes nearer than the margin."""
    others = probabilities(20, K, K).fill_diagonal_(0)
    others = others / others.sum(-1, keepdim=True)
    share = largest_share(others, MARGIN)
    rival = others.max(-1).values
    close(1 - share - share * rival, MARGIN)
    assert ((1 - share * 1.001) - share * 1.001 * rival < MARGIN).all()


def test_log_barrier_is_a_beta_2_2_prior():
    theta = values(21, 8)
    fractions = torch.sigmoid(theta)
    close(log_barrier(theta), reference.log_barrier(fractions.tolist()))
    check_gradient(log_barrier, theta)
    density = [math.gamma(4) / (math.gamma(2) ** 2) * x * (1 - x) for x in fractions.tolist()]
    close(log_barrier(theta), math.log(6) - sum(map(math.log, density)) / len(density))
    close(gradient(log_barrier, torch.tensor([0.0], dtype=torch.float64)), [0.0])
    assert gradient(log_barrier, torch.tensor([-4.0])) < 0 < gradient(log_barrier, torch.tensor([4.0]))


def test_log_barrier_stays_finite_far_out():
    """In single precision a sigmoid is exactly 0 or 1 out there."""
    for far in (-95.0, 18.0, 95.0):
        theta = torch.tensor([far])
        assert torch.isfinite(log_barrier(theta))
        assert torch.isfinite(gradient(log_barrier, theta)).all()
