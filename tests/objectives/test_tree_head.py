"""The head whose weights follow the tree: against a slow loop, as a linear layer, and in the objectives that take it."""

import copy

import pytest
import torch
from torch import Tensor, nn

from labelkin import Context, InputError, Kin, LabelEmbedding, OneHot, Taxonomy
from labelkin.functional import tree_index
from labelkin.objectives import OBJECTIVES
from labelkin.objectives._tree_head import TreeLinear

# Leaves at depths 1, 2 and 3.
TREE = Taxonomy.from_paths(["animal/pet/cat", "animal/pet/dog", "animal/cow", "car", "tool/saw", "tool/axe"])
OWN_HEADS = {
    *(
        "hierarchical",
        "convex-hierarchical",
        "conditional-softmax",
        "adaptive-labels",
        "static-labels",
        "haframe",
        "bilt",
    ),
    *("hier-cos", "hierarchical-ensemble", "unit-sphere"),
}


def head(tree: Taxonomy = TREE, features: int = 4) -> TreeLinear:
    torch.manual_seed(0)
    return TreeLinear(features, tree_index(tree)).double()


def slow_logits(layer: TreeLinear, tree: Taxonomy, features: Tensor) -> Tensor:
    """One class and one node at a time, from the equation."""
    layer = copy.deepcopy(layer).requires_grad_(False)
    rows = []
    for x in features:
        row = []
        for place, node in enumerate(tree.leaves.tolist()):
            path = []
            while node > 0:
                path.append(node)
                node = int(tree.parents[node])
            total = sum(float(layer.weight[n - 1] @ x) for n in path)
            row.append(total / len(path) ** 0.5 + float(layer.bias[place]))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


def test_logits_are_scaled_sums_over_the_paths():
    layer, features = head(), torch.randn(5, 4, dtype=torch.float64)
    assert torch.allclose(layer(features), slow_logits(layer, TREE, features))
    assert layer(features.reshape(5, 1, 4)).shape == (5, 1, 6)


def test_a_flat_tree_gives_a_linear_layer():
    tree = Taxonomy.from_parents([-1, 0, 0, 0], ["root", "a", "b", "c"])
    layer, features = head(tree), torch.randn(5, 4, dtype=torch.float64)
    same = nn.Linear(4, 3, dtype=torch.float64)
    same.load_state_dict({"weight": layer.weight.data, "bias": layer.bias.data})
    assert torch.allclose(layer(features), same(features))


def test_another_order_of_classes_gives_the_logits_in_that_order():
    names = ["axe", "car", "cat", "saw", "cow", "dog"]
    other = TREE.reorder(names)
    layer, moved = head(), head(other)
    place = [TREE.names[1:].index(name) for name in other.names[1:]]
    columns = [TREE.classes.index(name) for name in names]
    with torch.no_grad():
        moved.weight.copy_(layer.weight[place])
        moved.bias.copy_(layer.bias[columns])
    features = torch.randn(5, 4, dtype=torch.float64)
    assert torch.allclose(moved(features), layer(features)[:, columns])


def test_gradients():
    layer, features = head(), torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def logits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(logits, (features, layer.weight, layer.bias))


def test_weights_start_with_the_variance_of_a_linear_layer():
    torch.manual_seed(0)
    layer, linear = head(features=4096), nn.Linear(4096, 6)
    features = torch.eye(4096, dtype=torch.float64)
    rows = (layer(features) - layer.bias).detach()  # (F, K), the weights of the classes
    assert torch.allclose(rows.std(0), linear.weight.double().std().expand(6), rtol=0.05)


def test_classes_with_a_common_ancestor_learn_from_each_other():
    torch.manual_seed(0)
    objective = OneHot(TREE.classes, features=4, taxonomy=TREE, tree_head=True)
    x, cat = torch.randn(1, 4), TREE.classes.index("cat")
    before = objective(x)
    optimizer = torch.optim.SGD([objective.head.weight], lr=0.1)
    objective(x, torch.tensor([cat])).backward()
    optimizer.step()
    moved = dict(zip(TREE.classes, (objective(x) - before)[0].tolist(), strict=True))
    assert moved["cat"] > moved["dog"] > moved["cow"] > 0 > moved["car"]


def test_bf16_features_are_summed_in_float32():
    layer = head().bfloat16()
    assert layer(torch.randn(2, 4).bfloat16()).dtype == torch.float32


def test_both_heads_of_kin_follow_the_tree():
    kin = Kin(TREE, features=4, tree_head=True)
    assert isinstance(kin.head, TreeLinear)
    assert isinstance(kin.similarity_head, TreeLinear)
    assert not torch.equal(kin.head.weight, kin.similarity_head.weight)
    assert "tree_head=True" in repr(kin)
    assert isinstance(Kin(TREE, features=4).head, nn.Linear)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objectives_with_one_logit_per_class_take_it(name: str):
    inputs, targets = torch.randn(60, 4), torch.arange(60) % 6
    context = Context(TREE.classes, 4, TREE, inputs, targets, train_samples=60)
    if name in OWN_HEADS:
        with pytest.raises(InputError, match=r"tree_head: expected False, because .* has a head of its own"):
            OBJECTIVES[name].build(context, tree_head=True)
        return
    given = {"embedding": torch.eye(6)} if name == "pretrained-label-embedding" else {}
    objective = OBJECTIVES[name].build(context, tree_head=True, **given)
    assert isinstance(objective.head, TreeLinear)
    assert objective.taxonomy.classes == TREE.classes


def test_it_needs_a_tree_and_has_no_effect_without_features():
    with pytest.raises(InputError, match=r"tree_head: .* none was given; pass a labelkin\.Taxonomy"):
        OneHot(6, features=4, tree_head=True)
    assert isinstance(OneHot(TREE.classes, taxonomy=TREE, tree_head=True).head, nn.Identity)


def test_the_state_of_another_head_is_refused():
    saved = LabelEmbedding(TREE.classes, features=4, taxonomy=TREE, tree_head=True).state_dict()
    with pytest.raises(
        InputError, match="tree_head: this LabelEmbedding has False, the saved state is from one with True"
    ):
        LabelEmbedding(TREE.classes, features=4, taxonomy=TREE).load_state_dict(saved)
