"""Adaptive labels against 001 Eq. 1-3 written as loops."""

import pytest
import torch
import torch.nn.functional as F

from labelkin.functional import class_sums, cross_entropy, label_distances, leave_one_out_means, repel
from labelkin.functional._adaptive import distance_to, sum_by_class
from support import reference
from support.numeric import GAP, check_alive, check_gradient, close, gradient, positions, renamed, values

K, D, N = 5, 7, 12
WEIGHTS = {
    "equal": torch.ones(N, dtype=torch.float64),
    "unequal": torch.tensor([1, 2, 0.5, 0, 1, 3, 1, 0, 0.25, 1, 1, 2], dtype=torch.float64),  # 0 is padding
}
every_weight = pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)


def batch(seed=0):
    """Class 3 is present once, class 4 not at all."""
    target = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1, 2, 0, 0, 2])
    return values(seed, N, D), target


# Eq. 1.


@every_weight
def test_class_means_are_equation_1(weight):
    z, target = batch()
    sums = class_sums(z, target, weight, K)
    means = sums.means()
    for k in range(K):
        expected = reference.class_mean(z.tolist(), target.tolist(), weight.tolist(), k)
        close(means[k], [0.0] * D if expected is None else expected)
        close(sums.weight[k], sum(w for w, y in zip(weight.tolist(), target.tolist(), strict=True) if y == k))
        assert bool(sums.present[k]) == (expected is not None)
    check_gradient(lambda z: class_sums(z, target, weight, K).means(), z)


def test_a_class_that_is_only_padding_is_absent():
    z, target = batch()
    weight = (target != 2).double()
    sums = class_sums(z, target, weight, K)
    assert sums.present.tolist() == [True, True, False, True, False]
    assert (sums.means()[2] == 0).all()


def test_sum_by_class_runs_over_batches_of_any_shape():
    z, target = (x[:11] for x in batch())
    z = z.float()
    sums = sum_by_class([(z[:5], target[:5]), (z[5:].reshape(2, 3, D), target[5:].reshape(2, 3))], K, D)
    assert sums.total.dtype == torch.float64
    for k in range(K):
        expected = reference.class_mean(z.tolist(), target.tolist(), [1.0] * 11, k)
        close(sums.weight[k], target.tolist().count(k))
        close(sums.means()[k], [0.0] * D if expected is None else expected)


def test_sum_by_class_keeps_no_graph():
    z, target = batch()
    assert not sum_by_class([(z.requires_grad_(), target)], K, D).total.requires_grad


# Leave one out.


@every_weight
def test_leave_one_out_means_are_the_loop(weight):
    z, target = batch(1)
    means, alone = leave_one_out_means(z, target, weight, class_sums(z, target, weight, K))
    for i in range(N):
        expected = reference.class_mean(z.tolist(), target.tolist(), weight.tolist(), int(target[i]), leave_out=i)
        assert bool(alone[i]) == (expected is None)
        close(means[i], [0.0] * D if expected is None else expected)
    assert alone[5]  # the only one of class 3

    def means_of(z):
        return leave_one_out_means(z, target, weight, class_sums(z, target, weight, K))[0]

    check_gradient(means_of, z)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sample_has_no_part_in_its_own_label(dtype):
    z, target = batch(2)
    z, weight = z.to(dtype), torch.ones(N, dtype=dtype)
    for i in range(N):
        own = gradient(lambda z, i=i: leave_one_out_means(z, target, weight, class_sums(z, target, weight, K))[0][i], z)
        torch.testing.assert_close(
            own[i], torch.zeros(D, dtype=dtype), atol=1e-6 if dtype == torch.float32 else 1e-14, rtol=0
        )
        others = (target == target[i]) & (torch.arange(N) != i)
        assert ((own != 0).any(-1) | ~others).all()


# Eq. 2.


def test_distances_are_equation_2():
    z, labels = values(3, N, D), values(4, K, D)
    labels[2] = z[0]  # a sample that is its class's label: the floor
    expected = [[reference.distance(a, b) for b in labels.tolist()] for a in z.tolist()]
    close(label_distances(z, labels), expected)
    own = positions(5, K, N)
    close(distance_to(z, labels[own]), label_distances(z, labels)[range(N), own])
    assert label_distances(z, labels)[0, 2] == pytest.approx(1e-6)


def test_distances_are_exact_far_from_the_origin():
    """Expanding the square would lose a distance of 1 at 10,000 altogether in single precision."""
    z = torch.full((1, D), 1e4)
    labels = z.clone()
    labels[0, 0] += 1
    torch.testing.assert_close(label_distances(z, labels), torch.tensor([[1.0]]))


def test_distance_gradients():
    check_gradient(label_distances, values(6, N, D), values(7, K, D))
    check_gradient(distance_to, values(8, N, D), values(9, N, D))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_distance_of_zero_has_a_gradient_of_zero(dtype):
    z = torch.ones(1, D, dtype=dtype)
    for distance in (label_distances, distance_to):
        assert (gradient(lambda x, d=distance: d(x, torch.ones(1, D, dtype=dtype)), z) == 0).all()


def test_equation_2_with_far_unit_labels_is_a_softmax_of_z():
    """`-||z - c e_k||` is `-c + z_k` and terms of 1 / c: for large c the loss is cross entropy of z."""
    z, target = values(10, N, K), positions(11, K, N)
    labels = 1e8 * torch.eye(K, dtype=torch.float64)
    found = cross_entropy(-label_distances(z, labels), target)
    close(found, F.cross_entropy(z, target, reduction="none"), atol=1e-6)


def test_adaptive_loss_gradient_flows_through_the_labels():
    """The whole of Eq. 1-2: labels are means of the very samples that are measured against them."""
    z, target = batch(12)
    keep = target != 3  # a class present once is its own label: distance 0, on the floor
    z, target, weight = z[keep], target[keep], torch.ones(int(keep.sum()), dtype=torch.float64)

    def loss(z):
        labels = class_sums(z, target, weight, 3).means()
        return cross_entropy(-label_distances(z, labels), target)

    check_gradient(loss, z)
    labels = [reference.class_mean(z.tolist(), target.tolist(), weight.tolist(), k) for k in range(3)]
    expected = [
        reference.cross_entropy([-reference.distance(a, label) for label in labels], y)
        for a, y in zip(z.tolist(), target.tolist(), strict=True)
    ]
    close(loss(z), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alive_when_the_true_label_is_200_farther(dtype):
    labels = torch.eye(K, D, dtype=dtype)
    z = labels[:1].clone()
    labels[3] = z[0]
    labels[3, 6] += GAP
    check_alive(lambda z: cross_entropy(-label_distances(z, labels), torch.tensor([3])), z, 6)


# Eq. 3.


@every_weight
def test_repel_is_the_double_loop(weight):
    z, target = batch(13)
    close(repel(z, target, weight, K), reference.repel(z.tolist(), target.tolist(), weight.tolist()))
    check_gradient(lambda z: repel(z, target, weight, K), z)


def test_repel_of_one_class_is_nothing():
    z = values(14, N, D)
    close(repel(z, torch.zeros(N, dtype=torch.int64), torch.ones(N).double(), K), 0.0)


def test_repel_counts_pairs_of_one_class_as_zero():
    """Two equal vectors of two classes: 2 of the 4 pairs have cosine 1."""
    z = torch.ones(2, D, dtype=torch.float64)
    close(repel(z, torch.tensor([0, 1]), torch.ones(2).double(), K), 0.5)


def test_repel_without_samples_is_zero():
    z, target = batch(15)
    assert repel(z, target, torch.zeros(N).double(), K) == 0


# Order and names mean nothing.


def test_order_and_names_mean_nothing():
    z, target = batch(16)
    weight = WEIGHTS["unequal"]
    rows, _ = renamed(17, N)
    order, place = renamed(18, K)
    sums = class_sums(z, target, weight, K)
    close(class_sums(z[rows], target[rows], weight[rows], K).means(), sums.means())
    close(class_sums(z, place[target], weight, K).means(), sums.means()[order])
    close(repel(z[rows], target[rows], weight[rows], K), repel(z, target, weight, K))
    close(repel(z, place[target], weight, K), repel(z, target, weight, K))
    labels = values(19, K, D)
    close(label_distances(z[rows], labels[order]), label_distances(z, labels)[rows][:, order])
    means, alone = leave_one_out_means(z, target, weight, sums)
    again, still = leave_one_out_means(
        z[rows], place[target[rows]], weight[rows], class_sums(z[rows], place[target[rows]], weight[rows], K)
    )
    close(again, means[rows])
    assert torch.equal(still, alone[rows])
