"""The residual transformation: its layers written out, and the backbones that end in it."""

import pytest
import torch
import torch.nn.functional as F

from labelkin import OBJECTIVES, Context, InputError, Model, Taxonomy
from labelkin.models import ResidualHead, build


def norm(module, x):
    return F.batch_norm(x, None, None, module.weight, module.bias, training=True)


def test_it_is_its_layers_written_out():
    torch.manual_seed(0)
    head = ResidualHead(5, 3).double()
    x = torch.randn(7, 5, dtype=torch.float64)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    expected = norm(head.reduce[1], x @ head.reduce[0].weight.T)
    for layer in head.layers:
        y = expected
        for linear, batch_norm, prelu in layer.branch:
            y = norm(batch_norm, y @ linear.weight.T)
            y = torch.where(y > 0, y, prelu.weight * y)
        expected = expected + y
    torch.testing.assert_close(head(x), expected)


def test_the_width_before_an_average_is_that_after_it():
    """A 1 x 1 convolution before the average over the map, as the authors have it, is the linear layer after it."""
    torch.manual_seed(0)
    head, maps = ResidualHead(5, 3), torch.randn(4, 5, 6, 6)
    convolved = F.conv2d(maps, head.reduce[0].weight[:, :, None, None]).mean((2, 3))
    torch.testing.assert_close(head.reduce[0](maps.mean((2, 3))), convolved)


def test_layers_without_branches_leave_the_features():
    head = ResidualHead(4, 4).eval()
    with torch.no_grad():
        head.reduce[0].weight.copy_(torch.eye(4))
        for layer in head.layers:
            layer.branch[1][0].weight.zero_()
    x = torch.randn(3, 4)
    torch.testing.assert_close(head(x), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "features"), [("mlp+residual-7", 7), ("mlp+residual", None), ("tiny-cnn+residual-6", 6)]
)
def test_a_backbone_may_end_in_it(name, features):
    shape = (1, 8, 8)
    plain = build(name.partition("+")[0], shape)
    net = build(name, shape)
    assert net.features == (features or plain.features)
    assert net(torch.randn(4, *shape)).shape == (4, net.features)
    net.eval()
    assert isinstance(net.layers.residual, ResidualHead)


@pytest.mark.parametrize("name", ["one-hot", "haframe", "hier-cos", "bilt", "label-embedding"])
def test_every_objective_can_have_it(name):
    torch.manual_seed(0)
    tree = Taxonomy.from_paths(["a/x", "a/y", "b/z", "b/w"])
    net = build("mlp+residual-4", (3,))
    model = Model(net, OBJECTIVES[name].build(Context(classes=tree.classes, taxonomy=tree, features=net.features)))
    model.loss(torch.randn(8, 3), torch.arange(8) % 4).backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


@pytest.mark.parametrize("name", ["mlp+residual-0", "mlp+residual-x", "mlp+other", "mlp+"])
def test_what_is_no_head_is_refused(name):
    with pytest.raises(InputError, match=r"expected '\+residual' or '\+residual-WIDTH' after the name"):
        build(name, (8,))
    with pytest.raises(InputError, match="there is no backbone 'mlpp'"):
        build("mlpp+residual", (8,))
