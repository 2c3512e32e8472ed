"""Online label smoothing over epochs: against the loop, and what its labels remember."""

import copy

import pytest
import torch
import torch.nn.functional as F

from labelkin import InputError, LabelSmoothing, OnlineLabelSmoothing
from support import reference, reference_peers
from support.numeric import check_gradient, close, each, positions, values
from support.worlds import default_dtype

K = 4


def criterion(**options):
    with default_dtype(torch.float64):
        return OnlineLabelSmoothing(K, reduction="none", **options)


def batches(seed, count=3, n=9):
    """Logits that are right for about half of the samples, and targets."""
    for i in range(count):
        target = positions(seed + 10 * i, K - 1, n)  # no sample is of the last class
        yield values(seed + 10 * i + 1, n, K) + 1.5 * F.one_hot(target, K), target


def test_epochs_are_the_loop():
    objective, table = criterion(share=0.3), [[1 / K] * K] * K
    for epoch in range(4):
        objective.begin_epoch(epoch, 4)
        close(objective.soft_labels, table)
        probs, targets = [], []
        for logits, target in batches(100 * epoch):

            def slow(row, y, table=table):
                hard, soft = reference.cross_entropy(row, y), reference.soft_cross_entropy(row, table[y])
                return 0.3 * hard + 0.7 * soft

            close(objective(logits, target), each(slow, logits, target))
            probs += [reference.softmax(row) for row in logits.tolist()]
            targets += target.tolist()
        right = sum(max(p) == p[y] for p, y in zip(probs, targets, strict=True))
        assert 0 < right < len(targets)
        table = reference_peers.online_labels(probs, targets, K)
        assert table[-1] == [1 / K] * K


def test_weights_count_and_padding_does_not():
    objective = criterion()
    objective.begin_epoch(0, 2)
    ((logits, target),) = batches(0, count=1)
    weight = torch.rand(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight[[1, 5]] = 0
    bad = logits.clone()
    bad[1] = torch.nan
    objective(bad, target, weight=weight)
    objective.begin_epoch(1, 2)
    probs = [reference.softmax(row) for row in logits.tolist()]
    close(objective.soft_labels, reference_peers.online_labels(probs, target.tolist(), K, weight.tolist()))


def test_in_the_first_epoch_it_is_label_smoothing():
    objective = criterion(share=0.8)
    objective.begin_epoch(0, 5)
    with default_dtype(torch.float64):
        plain = LabelSmoothing(K, smoothing=0.2, reduction="none")
    for logits, target in batches(5):
        close(objective(logits, target), plain(logits, target))
    close(objective.label_vectors(), plain.label_vectors().double(), atol=1e-7)


def test_with_a_share_of_1_it_is_cross_entropy():
    objective = criterion(share=1.0)
    for epoch in range(2):
        objective.begin_epoch(epoch, 2)
        for logits, target in batches(epoch):
            close(objective(logits, target), F.cross_entropy(logits, target, reduction="none"))


def test_the_gradient_does_not_flow_through_the_labels():
    objective = criterion()
    objective.begin_epoch(0, 2)
    for logits, target in batches(0):
        objective(logits, target)
    objective.begin_epoch(1, 2)
    check_gradient(lambda x: objective(x, target), logits)
    assert not objective.soft_labels.requires_grad


def test_a_run_goes_on_from_a_state_within_an_epoch():
    objective, loaded = criterion(), criterion()
    objective.begin_epoch(0, 3)
    first, second, third = batches(7)
    objective(*first)
    loaded.load_state_dict(copy.deepcopy(objective.state_dict()))
    for one in (objective, loaded):
        one(*second)
        one.begin_epoch(1, 3)
        one(*third)
    for name, value in objective.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name]), name


def test_an_epoch_without_samples_keeps_the_labels():
    objective = criterion()
    objective.begin_epoch(0, 3)
    for logits, target in batches(0):
        objective(logits, target)
    objective.begin_epoch(1, 3)
    before = objective.soft_labels.clone()
    objective.begin_epoch(1, 3)
    close(objective.soft_labels, before)


def test_a_sample_that_is_not_finite_leaves_no_trace():
    objective, other = criterion(), criterion()
    ((logits, target),) = batches(0, count=1)
    bad = logits.clone()
    bad[0] = torch.inf
    for one, given, weight in ((objective, bad, torch.ones(9)), (other, logits, 1.0 - F.one_hot(torch.tensor(0), 9))):
        one.begin_epoch(0, 2)
        one(given, target, weight=weight)
        one.begin_epoch(1, 2)
    close(objective.soft_labels, other.soft_labels)


def test_a_step_before_the_first_epoch_is_refused():
    with pytest.raises(InputError, match=r"OnlineLabelSmoothing: call begin_epoch"):
        criterion()(torch.zeros(1, K), torch.tensor([0]))
    assert torch.isfinite(criterion().eval()(torch.zeros(1, K), torch.tensor([0])))
    with pytest.raises(InputError, match="share: expected"):
        OnlineLabelSmoothing(K, share=2)
