"""Cross entropy of a linear layer in chunks: losses and gradients of the layer with whole logits, in less memory."""

import itertools
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from labelkin import InputError
from labelkin.bench import _loss_cases as loss_cases
from labelkin.bench import _references as references
from labelkin.functional import DenseTargets, class_target_cross_entropy, linear_cross_entropy
from labelkin.functional import _kernels as kernels
from labelkin.functional._kernels import chunks
from support.memory import LargestTensor
from support.numeric import close, values

KINDS = ("hard", *loss_cases.KINDS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def rows_at_once(monkeypatch):
    """Sets how many rows of 7 classes a chunk has at most."""

    def set_rows(rows, classes=7):
        monkeypatch.setattr(chunks, "ENTRIES", {})
        monkeypatch.setattr(chunks, "ENTRIES_ELSEWHERE", rows * classes)
        monkeypatch.setattr(chunks, "PART_OF_WEIGHTS", 2**60)

    return set_rows


def drawn(*shape, seed=0, device="cpu", dtype=torch.float32):
    return values(seed, *shape, scale=1.0).to(device, dtype).requires_grad_()


def layer(rows=11, features=5, classes=7, **options):
    return (
        drawn(rows, features, **options),
        drawn(classes, features, seed=1, **options),
        drawn(classes, seed=2, **options),
    )


def targets_of(kind, classes, device="cpu", dtype=torch.float32):
    if kind == "hard":
        return None
    given = loss_cases.class_targets(kind, classes, device)
    return type(given)(*(part.to(dtype) if part.is_floating_point() else part for part in given))


def slow_loss(x, weight, bias, label, targets):
    """The loss of one sample by loops over features and classes, in Python numbers."""
    logits = [sum(a * b for a, b in zip(x, row, strict=True)) + extra for row, extra in zip(weight, bias, strict=True)]
    total = math.log(sum(math.exp(value) for value in logits))
    if targets is None:
        return total - logits[label]
    row = references.class_matrix_row(label, targets, len(logits)).tolist()
    return sum(share * (total - value) for share, value in zip(row, logits, strict=True))


def gradients(loss, *inputs):
    return torch.autograd.grad(loss, inputs)


@every_kind
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_losses_are_those_of_loops(kind, rows, device, rows_at_once):
    rows_at_once(rows)
    x, weight, bias = layer(device=device)
    targets, target = targets_of(kind, 7, device), (torch.arange(11) * 3 % 7).to(device)
    found = linear_cross_entropy(x, weight, target, bias, targets=targets, reduction="none")
    plain = [part.detach().double().tolist() for part in (x, weight, bias)]
    expected = [slow_loss(own, *plain[1:], int(y), targets) for own, y in zip(plain[0], target, strict=True)]
    torch.testing.assert_close(found.detach().cpu().double(), torch.tensor(expected).double(), atol=1e-5, rtol=1e-5)


@every_kind
@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
@pytest.mark.parametrize("rows", [3, 100])
def test_gradients_are_those_of_whole_logits(kind, reduction, rows, device, rows_at_once):
    rows_at_once(rows)
    inputs = layer(device=device)
    targets, target = targets_of(kind, 7, device), (torch.arange(11) * 3 % 7).to(device)
    share = torch.linspace(0, 2, 11, device=device)
    outer = torch.linspace(-1, 1, 11, device=device) if reduction == "none" else torch.tensor(0.7, device=device)
    x, weight, bias = inputs
    loss = linear_cross_entropy(x, weight, target, bias, targets=targets, sample_weight=share, reduction=reduction)
    found = gradients((loss * outer).sum(), *inputs)
    exact = [part.detach().double().requires_grad_() for part in inputs]
    log_probs = F.log_softmax(F.linear(*exact), -1)
    matrix = torch.eye(7) if targets is None else torch.stack([
        references.class_matrix_row(label, targets, 7) for label in range(7)
    ])  # fmt: skip
    losses = -(matrix.to(device).double()[target] * log_probs).sum(-1) * share.double()
    whole = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / share.double().sum()}[reduction]
    for got, wanted in zip(found, gradients((whole * outer.double()).sum(), *exact), strict=True):
        torch.testing.assert_close(got.double(), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_hard_targets_are_torch_s_cross_entropy(reduction, weighted, device, rows_at_once):
    rows_at_once(2)
    inputs = x, weight, bias = layer(device=device)
    target = (torch.arange(11) * 3 % 7).to(device)
    target[[2, 9]] = -100
    class_weight = torch.rand(7, device=device) if weighted else None
    found = linear_cross_entropy(x, weight, target, bias, class_weight=class_weight, reduction=reduction)
    expected = F.cross_entropy(F.linear(*inputs), target, class_weight, reduction=reduction)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found.sum(), *inputs), gradients(expected.sum(), *inputs))


def test_leading_shapes_and_no_bias(device):
    x, weight = drawn(2, 3, 5, device=device), drawn(7, 5, seed=1, device=device)
    target = torch.tensor([[0, 6, 3], [-1, 2, 2]], device=device)
    found = linear_cross_entropy(x, weight, target, reduction="none", ignore_index=-1)
    expected = F.cross_entropy((x @ weight.T).flatten(0, 1), target.flatten(), ignore_index=-1, reduction="none")
    torch.testing.assert_close(found, expected.view(2, 3))
    torch.testing.assert_close(gradients(found.sum(), x, weight), gradients(expected.sum(), x, weight))


@pytest.mark.long
@every_kind
def test_gradients_in_float64(kind, rows_at_once):
    rows_at_once(2)
    inputs = layer(rows=5, features=3, dtype=torch.float64)
    targets, target = targets_of(kind, 7, dtype=torch.float64), torch.tensor([0, 6, 3, -100, 2])
    for reduction in ("mean", "none"):

        def loss(x, weight, bias, reduction=reduction):
            return linear_cross_entropy(x, weight, target, bias, targets=targets, reduction=reduction)

        assert torch.autograd.gradcheck(loss, inputs)
        assert torch.autograd.gradgradcheck(loss, inputs)


@every_kind
def test_names_and_order_of_classes_do_not_matter(kind):
    if kind in ("ordinal", "sparse", "low-rank"):
        pytest.skip("covered by the dense matrix")
    x, weight, bias = layer(dtype=torch.float64)
    targets, target = targets_of(kind, 7, dtype=torch.float64), torch.arange(11) * 3 % 7
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    moved = targets if targets is None else type(targets)(*(part[order] for part in targets))
    if kind in ("dense", "scaled"):
        moved = moved._replace(matrix=moved.matrix[:, order])
    expected = linear_cross_entropy(x, weight, target, bias, targets=targets)
    close(linear_cross_entropy(x, weight[order], order.argsort()[target], bias[order], targets=moved), expected)
    samples = torch.randperm(11, generator=torch.Generator().manual_seed(1))
    close(linear_cross_entropy(x[samples], weight, target[samples], bias, targets=targets), expected)


@every_kind
def test_masked_classes_are_left_out(kind, device):
    """A bias of -inf masks its class; as in `soft_cross_entropy` with `target`."""
    x, weight, bias = layer(device=device)
    bias = bias.detach().clone()
    bias[[1, 4]] = -math.inf
    targets, target = targets_of(kind, 7, device), torch.tensor([0, 2, 3, 5, 6, 0, 2, 3, 5, 6, 0], device=device)
    open_classes = torch.tensor([0, 2, 3, 5, 6], device=device)
    found = linear_cross_entropy(x, weight, target, bias, targets=targets, reduction="none")
    log_probs = F.log_softmax((F.linear(x, weight, bias)).double()[:, open_classes], -1)
    matrix = torch.eye(7) if targets is None else torch.stack([
        references.class_matrix_row(label, targets, 7) for label in range(7)
    ])  # fmt: skip
    expected = -(matrix.to(device).double()[target][:, open_classes] * log_probs).sum(-1)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    for got, wanted in zip(gradients(found.sum(), x, weight), gradients(expected.sum(), x, weight), strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_a_masked_target_is_infinitely_wrong(device):
    logits = torch.zeros(1, 3, device=device)
    logits[0, 1] = -math.inf
    given = DenseTargets(torch.full((3, 3), 1 / 3, device=device))
    assert class_target_cross_entropy(logits, torch.tensor([1], device=device), given).item() == math.inf


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_nothing_counted_gives_zero(reduction, device):
    inputs = x, weight, bias = layer(device=device)
    target = torch.full((11,), -100, device=device)
    found = linear_cross_entropy(x, weight, target, bias, reduction=reduction)
    assert not found.any()
    assert not any(gradient.any() for gradient in gradients(found.sum(), *inputs))


def test_no_samples_at_all():
    x, weight, bias = layer(rows=0)
    found = linear_cross_entropy(x, weight, torch.zeros(0, dtype=torch.int64), bias)
    assert found.item() == 0
    assert not gradients(found, weight)[0].any()


def test_gradients_can_be_asked_for_twice():
    inputs = x, weight, bias = layer()
    total = linear_cross_entropy(x, weight, torch.arange(11) % 7, bias)
    first = torch.autograd.grad(total, inputs, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(3 * total, inputs), tuple(3 * part for part in first))


def test_only_wanted_gradients_are_made():
    x, weight, bias = (part.detach() for part in layer())
    weight.requires_grad_()
    linear_cross_entropy(x, weight, torch.arange(11) % 7, bias).backward()
    assert x.grad is bias.grad is None
    assert weight.grad.any()
    assert not linear_cross_entropy(x, weight.detach(), torch.arange(11) % 7, bias).requires_grad


@pytest.mark.parametrize("autocast", [False, True])
def test_bfloat16_is_within_its_rounding(autocast, device, rows_at_once):
    rows_at_once(4)
    inputs = x, weight, bias = layer(device=device, dtype=torch.float32 if autocast else torch.bfloat16)
    target = (torch.arange(11) * 3 % 7).to(device)
    with torch.autocast(device, torch.bfloat16, enabled=autocast):
        found = linear_cross_entropy(x, weight, target, bias)
    exact = [part.detach().double().requires_grad_() for part in inputs]
    expected = F.cross_entropy(F.linear(*exact), target)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-2, atol=1e-2)
    for got, wanted, given in zip(gradients(found, *inputs), gradients(expected, *exact), inputs, strict=True):
        assert got.dtype == given.dtype
        assert (got.double() - wanted).norm() < 2e-2 * wanted.norm()


def test_half_precision_gradients_are_multiplied_by_an_unrounded_number():
    gradient = torch.full((3,), 85.0, dtype=torch.bfloat16)
    chunks.scale(gradient, torch.tensor(3 + 2**-7))  # rounded to bfloat16, the factor is 3 and the product 255
    assert gradient.tolist() == [256.0] * 3


@every_kind
def test_logits_are_never_whole(kind, monkeypatch):
    monkeypatch.setattr(chunks, "ENTRIES_ELSEWHERE", 2**18)
    rows, classes, features = 1024, 1003, 8
    x, weight, bias = layer(rows, features, classes)
    targets, target = targets_of(kind, classes), torch.arange(rows) * 7 % classes
    for reduction in ("mean", "none"):
        with LargestTensor() as made:
            linear_cross_entropy(x, weight, target, bias, targets=targets, reduction=reduction).sum().backward()
        assert made.numel <= chunks.ENTRIES_ELSEWHERE + classes
        assert made.peak_bytes < 6 * 4 * chunks.ENTRIES_ELSEWHERE


def test_chunks_cover_all_rows_once(monkeypatch):
    monkeypatch.setattr(chunks, "ENTRIES_ELSEWHERE", 70)
    for rows, classes, features in itertools.product((0, 1, 9, 10, 11, 101), (1, 7, 1000), (1, 50)):
        found = chunks.slices(rows, classes, features, torch.device("cpu"))
        assert [row for part in found for row in range(rows)[part]] == list(range(rows))
        largest = max((len(range(rows)[part]) for part in found), default=0)
        assert largest * classes <= max(70, classes * features // 4, classes)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hard", "sparse"])
def test_compiled_losses_are_the_eager_ones(kind, rows_at_once):
    rows_at_once(4)
    inputs = x, weight, bias = layer()
    targets, target = targets_of(kind, 7), torch.arange(11) * 3 % 7
    loss = partial(linear_cross_entropy, targets=targets)
    compiled = torch.compile(lambda x, weight, y, bias: loss(x, weight, y, bias), backend="aot_eager", fullgraph=True)
    found, expected = compiled(x, weight, target, bias), loss(x, weight, target, bias)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, *inputs), gradients(expected, *inputs))


@every_kind
def test_transforms_take_the_composed_form(kind):
    x, weight, bias = (part.detach() for part in layer())
    targets, target = targets_of(kind, 7), torch.arange(11) * 3 % 7

    def loss(x, y):
        return linear_cross_entropy(x, weight, y, bias, targets=targets, reduction="none")

    expected = loss(x, target)
    torch.testing.assert_close(torch.func.vmap(loss)(x[:, None], target[:, None])[:, 0], expected)
    _, forward = torch.func.jvp(lambda x: loss(x, target), (x,), (torch.ones_like(x),))
    step = 1e-3 * torch.ones_like(x)
    torch.testing.assert_close(forward, (loss(x + step, target) - loss(x - step, target)) / 2e-3, atol=2e-3, rtol=2e-3)
    if targets is not None:
        logits = F.linear(x, weight, bias)
        by_sample = torch.func.vmap(lambda z, y: class_target_cross_entropy(z, y, targets))(logits, target)
        torch.testing.assert_close(by_sample, expected)


def test_large_ranks_take_torch_operations(device):
    x, weight, bias = layer(classes=3, device=device)
    wide = torch.rand(3, 200, device=device)
    targets = kernels.LowRankTargets(wide, wide, torch.zeros(3, device=device))
    target = torch.arange(11, device=device) % 3
    found = linear_cross_entropy(x, weight, target, bias, targets=targets)
    dense = linear_cross_entropy(x, weight, target, bias, targets=DenseTargets(wide @ wide.T))
    torch.testing.assert_close(found, dense)


def test_an_unknown_reduction_is_refused():
    x, weight, _ = layer()
    with pytest.raises(InputError, match="reduction"):
        linear_cross_entropy(x, weight, torch.arange(11) % 7, reduction="median")
