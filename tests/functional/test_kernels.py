"""Fused losses against their definitions in float64, on the CPU and, where Triton is installed, through its kernels.

Without a GPU the Triton kernels run in its interpreter, which `TRITON_INTERPRET=1` turns on.
"""

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from labelkin import functional
from labelkin.bench import _loss_cases as loss_cases
from labelkin.bench import _references as references
from labelkin.functional import TreeIndex, tree_index
from labelkin.functional import _kernels as kernels
from labelkin.functional._kernels import losses as fused_losses
from labelkin.functional._kernels.index import rings
from support import reference
from support.numeric import GAP
from support.trees import KINDS, named, random_taxonomy

TREE_LOSSES = {  # on leaves, ours, the definition
    "conditional": (False, kernels.conditional_softmax, references.conditional_softmax),
    "convex": (False, kernels.convex_hierarchical, references.convex_hierarchical),
    "path": (False, kernels.hierarchical, references.hierarchical),
    "leaf": (False, partial(kernels.hierarchical, targets="leaf"), partial(references.hierarchical, targets="leaf")),
    "hxe": (
        True,
        partial(kernels.hierarchical_cross_entropy, alpha=0.4),
        partial(references.hierarchical_cross_entropy, alpha=0.4),
    ),
    "ancestors": (
        True,
        partial(kernels.ancestors, weight=0.3, base=1.0),
        partial(references.ancestors, weight=0.3, base=1.0),
    ),
}
every_loss = pytest.mark.parametrize("loss", TREE_LOSSES)
every_kind = pytest.mark.parametrize("kind", loss_cases.KINDS)


def on(device, value):
    return tuple(on(device, part) for part in value) if isinstance(value, tuple) else value.to(device)


def index_on(device, taxonomy):
    return TreeIndex(*on(device, tree_index(taxonomy)))


def drawn(seed, *shape, scale=2.0, dtype=torch.float32):
    return (scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).to(dtype)


def with_gradient(loss, logits, target):
    logits = logits.detach().clone().requires_grad_()
    found = loss(logits, target)
    weight = torch.linspace(0.5, 1.5, found.numel(), dtype=found.dtype, device=found.device).view_as(found)
    return found.detach(), torch.autograd.grad((found * weight).sum(), logits)[0]


def relative_error(found, expected):
    return ((found.double() - expected).norm() / expected.norm().clamp_min(1e-9)).item()


def check(ours, reference, logits, target, tolerance=1e-5):
    """Loss and gradient within the tolerance of the definition in float64."""
    found = with_gradient(ours, logits, target)
    expected = with_gradient(reference, logits.double(), target)
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        assert got.dtype == logits.dtype
        assert relative_error(got, wanted) < tolerance
    return found


def check_tree(loss, taxonomy, device, nodes, *, scale=2.0, dtype=torch.float32, tolerance=1e-5):
    on_leaves, ours, reference = TREE_LOSSES[loss]
    index, target = index_on(device, taxonomy), torch.as_tensor(nodes, device=device)
    logits = drawn(len(taxonomy), len(target), len(taxonomy.leaves) if on_leaves else len(taxonomy) - 1, scale=scale)
    logits = logits.to(device, dtype)
    if loss in ("path", "leaf") and not kernels.fits_hierarchical(logits, target, index):
        pytest.skip("leaves at different depths have a kernel on CUDA alone")
    assert kernels.fits(logits, target, index)
    check(partial(ours, tree=index), partial(reference, tree=index), logits, target, tolerance)


@every_loss
@pytest.mark.parametrize("tree", KINDS)
def test_tree_losses_are_their_definitions(loss, tree, device):
    taxonomy = random_taxonomy(np.random.default_rng(3), 9, tree)
    nodes = torch.randint(len(taxonomy), (6,), generator=torch.Generator().manual_seed(0))
    nodes[0], nodes[1] = 0, int(taxonomy.leaves[0])  # the root, which says nothing, and a leaf
    check_tree(loss, taxonomy, device, nodes)


@every_loss
def test_even_trees_of_every_target(loss, device):
    taxonomy = named([-1, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 5])  # all leaves at depth 3, node 4 with one child
    check_tree(loss, taxonomy, device, range(len(taxonomy)))


@every_loss
@pytest.mark.parametrize("leaves", [2, 33, 75])
def test_odd_widths(loss, leaves, device):
    check_tree(loss, random_taxonomy(np.random.default_rng(leaves), leaves, "balanced"), device, [1, 2, leaves])


@pytest.mark.long
@every_loss
@pytest.mark.parametrize("leaves", [1003, 2048])
def test_wide_rows_on_the_cpu(loss, leaves, for_every_size):
    for tree in ("unbalanced", "balanced", "star"):
        taxonomy = random_taxonomy(np.random.default_rng(1), leaves, tree)
        nodes = torch.randint(len(taxonomy), (40,), generator=torch.Generator().manual_seed(0))
        if loss not in ("path", "leaf") or tree == "star":
            check_tree(loss, taxonomy, "cpu", nodes)


@pytest.mark.parametrize("scale", [2.0, 60.0])
def test_the_softmax_is_left_where_it_is_rounded_to_0(scale, for_every_size):
    """Large logits give subtrees a share far below float32's range; the result keeps its relative precision."""
    taxonomy = random_taxonomy(np.random.default_rng(1), 1003, "unbalanced")
    check_tree("hxe", taxonomy, "cpu", taxonomy.leaves[:40], scale=scale)
    check_tree("hxe", taxonomy, "cpu", taxonomy.leaves[:40], scale=scale, dtype=torch.float64, tolerance=1e-10)


@every_loss
def test_a_target_far_below_the_best_logit_has_loss_and_gradient(loss, device):
    on_leaves, ours, reference = TREE_LOSSES[loss]
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2])
    index = index_on(device, taxonomy)
    logits = torch.zeros(1, 4 if on_leaves else 6, device=device)
    logits[0, 0] = -GAP
    target = torch.tensor([3 if on_leaves else 1], device=device)
    loss_found, grad = check(partial(ours, tree=index), partial(reference, tree=index), logits, target)
    assert loss_found.item() > GAP / 3
    assert grad[0, 0] < -0.1


@every_loss
@pytest.mark.parametrize("scale", [2.0, 60.0])
def test_many_nodes_at_different_depths(loss, scale, device):
    """More uneven nodes, children and edges than a tile of a kernel has; with large logits, most subtrees round to 0."""
    draw = np.random.default_rng(2)
    taxonomy = named([-1, *(int(draw.integers(node)) for node in range(1, 500)), *[7] * 40])
    nodes = [*taxonomy.leaves[::70], *range(1, 400, 80)]
    check_tree(loss, taxonomy, device, nodes, scale=scale)


@pytest.mark.parametrize("loss", ["hxe", "ancestors"])
@pytest.mark.parametrize("leaves", [7, 75])
def test_a_row_without_open_classes(loss, leaves, device):
    _, ours, reference = TREE_LOSSES[loss]
    taxonomy = random_taxonomy(np.random.default_rng(6), leaves, "unbalanced")
    index, logits = index_on(device, taxonomy), drawn(5, 3, leaves).to(device)
    target = torch.as_tensor(taxonomy.leaves[:3].copy(), device=device)
    logits[1] = -math.inf
    losses, grad = with_gradient(partial(ours, tree=index), logits, target)
    expected = with_gradient(partial(reference, tree=index), logits.double(), target)
    assert losses[1].isposinf()
    assert (grad[1] == 0).all()
    for found, wanted in zip((losses, grad), expected, strict=True):
        torch.testing.assert_close(found[::2].double(), wanted[::2], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("loss", ["hxe", "ancestors"])
def test_rows_too_wide_for_one_program(loss, device, monkeypatch):
    """The kernels that read a row ring by ring."""
    monkeypatch.setattr(fused_losses, "WHOLE_ROWS", 0)
    for tree in KINDS:
        test_tree_losses_are_their_definitions(loss, tree, device)
    test_odd_widths(loss, 75, device)
    test_a_target_far_below_the_best_logit_has_loss_and_gradient(loss, device)
    test_classes_masked_off_the_path(loss, device)
    test_a_row_without_open_classes(loss, 75, device)


@pytest.mark.parametrize("tree", KINDS)
def test_rings_are_depths_of_common_ancestors(tree):
    taxonomy = random_taxonomy(np.random.default_rng(4), 12, tree)
    parents, leaves = taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    paths = [{0, *reference.path(parents, leaf)} for leaf in leaves]
    index = tree_index(taxonomy)
    found, place = rings(index), kernels.path_index(index).first[taxonomy.leaves]
    for row, ours in enumerate(paths):
        assert found[place[row]].tolist() == [len(ours & theirs) - 1 for theirs in paths]
    assert rings(index) is found


@every_loss
def test_classes_masked_off_the_path(loss, device):
    on_leaves, ours, reference = TREE_LOSSES[loss]
    taxonomy = named([-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3])
    index = index_on(device, taxonomy)
    logits = drawn(5, 2, 7 if on_leaves else 10).to(device)
    masked = [2, 3, 4] if on_leaves else [2, 5]  # a sibling, and on leaves the whole subtree of node 2
    logits[:, masked] = -math.inf
    target = torch.tensor([4, 5], device=device)
    found = with_gradient(partial(ours, tree=index), logits, target)
    expected = with_gradient(partial(reference, tree=index), logits.double(), target)
    assert relative_error(found[0], expected[0]) < 1e-5
    assert torch.isfinite(found[1]).all()
    assert (found[1][:, masked] == 0).all()
    if torch.isfinite(expected[1]).all():
        assert relative_error(found[1], expected[1]) < 1e-5


SHUT = {  # parents, and masks: the children of nodes that stay open
    "even": ([-1, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8], ([5, 6], [8], [4, 5, 8], [5, 6, 7, 8])),
    "deep": ([-1, 0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8], ([6, 8], [6], [3, 4], [5])),  # leaves at depth 5, 5, 5 and 4
    "ragged": ([-1, 0, 0, 0, 1, 1, 2, 4, 4, 5, 7, 8, 8, 6, 6, 13, 14], ([6, 7], [5], [3, 4], [8], [5, 6, 7])),
    "single": ([-1, 0, 1, 2, 2], ([1], [0], [0, 1])),
}


@pytest.mark.parametrize("targets", ["path", "leaf"])
@pytest.mark.parametrize("tree", SHUT)
def test_nothing_is_counted_below_an_open_node_whose_children_are_masked(tree, targets, device):
    """Against a loop over the nodes: the loss without its path, and the whole gradient, for every target in turn."""
    parents, masks = SHUT[tree]
    taxonomy = named(parents)
    index, nodes = index_on(device, taxonomy), torch.arange(len(parents))
    seen = 0
    for masked in masks:
        logits = drawn(len(masked), len(parents), len(parents) - 1)
        logits[:, masked] = -math.inf
        open_path = [all(logits[0, j - 1] > -math.inf for j in reference.path(parents, n)) for n in nodes.tolist()]
        rows = torch.tensor(open_path)
        found, grad = with_gradient(
            partial(functional.hierarchical, tree=index, targets=targets), logits.to(device), nodes.to(device)
        )
        assert found.cpu()[~rows].isposinf().all()
        assert grad.isfinite().all()
        exact = logits.double().requires_grad_()
        mass = torch.stack([reference.open_mass(exact[n], parents, n) for n in nodes.tolist()])
        weight = torch.linspace(0.5, 1.5, len(nodes), dtype=torch.float64)
        path = [exact.new_zeros(())] * len(nodes)
        for node in nodes[rows].tolist():
            steps = reference.path(parents, node)
            for depth, j in enumerate(steps):
                siblings = [k - 1 for k in reference.children(parents, parents[j])]
                log_p = exact[node, j - 1] - exact[node, siblings].logsumexp(0)
                path[node] = path[node] - (len(steps) - depth if targets == "path" else 1) * log_p
        losses = torch.stack(path) + mass + 0 * exact.nan_to_num(neginf=0).sum(-1)
        (wanted,) = torch.autograd.grad((losses * weight)[rows].sum(), exact)
        torch.testing.assert_close(found.cpu()[rows].double(), losses[rows], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(grad.cpu()[rows].double(), wanted[rows].nan_to_num(), atol=1e-5, rtol=1e-5)
        seen += int(rows.sum())
    assert seen >= 4


@every_loss
def test_bfloat16_is_within_its_rounding(loss, device):
    taxonomy = named([-1, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 5])
    check_tree(loss, taxonomy, device, taxonomy.leaves, dtype=torch.bfloat16, tolerance=1e-2)


@every_kind
@pytest.mark.parametrize("classes", [1, 2, 33, 130])
def test_class_targets_are_rows_of_the_matrix(kind, classes, device):
    targets = loss_cases.class_targets(kind, classes, device)
    target = torch.randint(classes, (5,), generator=torch.Generator().manual_seed(classes)).to(device)
    logits = drawn(classes, 5, classes).to(device)
    assert kernels.fits_classes(logits, target, targets)
    ours = partial(kernels.class_target_cross_entropy, targets=targets)
    reference = partial(references.class_target_cross_entropy, targets=targets)
    found, grad = with_gradient(ours, logits, target)
    wanted, wanted_grad = with_gradient(reference, logits.double(), target)
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(grad.double(), wanted_grad, atol=1e-5, rtol=1e-5)


@every_kind
def test_many_classes_on_the_cpu(kind):
    targets = loss_cases.class_targets(kind, 1003)
    target = torch.randint(1003, (70,), generator=torch.Generator().manual_seed(0))
    ours = partial(kernels.class_target_cross_entropy, targets=targets)
    check(ours, partial(references.class_target_cross_entropy, targets=targets), drawn(0, 70, 1003), target)


def test_the_identity_is_cross_entropy(device):
    logits, target = drawn(0, 4, 7).to(device), torch.tensor([0, 6, 3, 3], device=device)
    for targets in (kernels.DenseTargets(torch.eye(7)), kernels.sparse_targets(torch.eye(7))):
        given = type(targets)(*(part.to(device) for part in targets))
        found = kernels.class_target_cross_entropy(logits, target, given)
        torch.testing.assert_close(found, F.cross_entropy(logits, target, reduction="none"))


def test_depth_weights_reduce_to_cross_entropy(device):
    """HXE with alpha 0, and the ancestors' term with weight 0, on classes whose order is not depth first."""
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2], [6, 3, 5, 4])
    index = index_on(device, taxonomy)
    logits, target = drawn(1, 4, 4).to(device), torch.arange(4, device=device)
    flat = F.cross_entropy(logits, target, reduction="none")
    nodes = index.leaves[target]
    torch.testing.assert_close(kernels.hierarchical_cross_entropy(logits, nodes, index, alpha=0.0), flat)
    torch.testing.assert_close(kernels.ancestors(logits, nodes, index, weight=0.0, base=1.0), flat)


@pytest.mark.long
@every_loss
def test_gradients_and_their_gradients_in_float64(loss, for_every_size):
    on_leaves, ours, _ = TREE_LOSSES[loss]
    taxonomy = named([-1, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 5], [10, 6, 11, 7, 8, 9])
    index, target = tree_index(taxonomy), torch.tensor([10, 6, 4, 1])
    logits = drawn(2, 4, 6 if on_leaves else 11).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: ours(x, target, index), (logits,))
    assert torch.autograd.gradgradcheck(lambda x: ours(x, target, index), (logits,))


@every_kind
def test_class_target_gradients_in_float64(kind):
    targets = loss_cases.class_targets(kind, 5)
    targets = type(targets)(*(part.double() if part.is_floating_point() else part for part in targets))
    logits, target = drawn(2, 3, 5).double().requires_grad_(), torch.tensor([0, 4, 2])
    assert torch.autograd.gradcheck(lambda x: kernels.class_target_cross_entropy(x, target, targets), (logits,))


def test_leading_shapes_strides_and_normalization(device):
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2])
    index = index_on(device, taxonomy)
    logits = drawn(0, 4, 6).to(device).t().reshape(2, 3, 4)  # columns are not contiguous
    target = torch.tensor([[3, 4, 5], [6, 1, 0]], device=device)
    found = kernels.hierarchical_cross_entropy(logits, target, index, alpha=0.5, normalize=True)
    whole = torch.exp(-0.5 * index.lengths.double()).sum()
    expected = references.hierarchical_cross_entropy(logits.double(), target, index, alpha=0.5) / whole
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.long
@every_loss
def test_compiled_losses_are_the_eager_ones(loss, for_every_size, monkeypatch):
    """Through the custom operator, with the index built before."""
    on_leaves, ours, _ = TREE_LOSSES[loss]
    taxonomy = named([-1, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 5])
    index = tree_index(taxonomy)
    made = kernels.path_index(index)
    monkeypatch.setattr(fused_losses, "path_index", lambda tree: made)
    logits, target = drawn(2, 6, 6 if on_leaves else 11), index.leaves
    compiled = torch.compile(lambda x, t: ours(x, t, index), backend="aot_eager", fullgraph=True)
    for got, wanted in zip(
        with_gradient(compiled, logits, target), with_gradient(partial(ours, tree=index), logits, target), strict=True
    ):
        torch.testing.assert_close(got, wanted)


def test_what_has_no_kernel_is_refused(monkeypatch):
    monkeypatch.setattr(fused_losses, "LITTLE", 0)
    taxonomy = random_taxonomy(np.random.default_rng(0), 600, "unbalanced")
    index = tree_index(taxonomy)
    logits, target = torch.zeros(2, 600), index.leaves[:2]
    assert kernels.fits(logits, target, index)
    assert not kernels.fits_hierarchical(torch.zeros(2, len(taxonomy) - 1), target, index)  # leaves at many depths
    assert not kernels.fits(logits, torch.full((2, 600), 1 / 600), index)  # class probabilities
    assert not kernels.fits(logits[:0], target[:0], index)
    assert not kernels.fits(logits.to(torch.int64), target, index)
    assert not kernels.fits(logits.to("meta"), target, index)
    assert not torch.func.vmap(lambda x: torch.tensor(kernels.fits(x, target[0], index)))(logits).any()


def test_the_index_is_made_once():
    index = tree_index(random_taxonomy(np.random.default_rng(0), 9, "balanced"))
    assert kernels.path_index(index) is kernels.path_index(TreeIndex(*index))
