"""What the numeric tests share: seeded values, comparison to 1e-9 with a slow loop, gradients and their checks."""

import itertools

import torch

GAP = 200.0  # how far below the best logit the true class lies


def values(seed, *shape, scale=2.0):
    """Normal float64 numbers."""
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def positions(seed, count, *shape):
    """Whole numbers below `count`."""
    return torch.randint(count, shape, generator=torch.Generator().manual_seed(seed))


def probabilities(seed, *shape):
    """Positive rows that sum to 1."""
    return torch.softmax(values(seed, *shape, scale=1.0), -1)


def relation(seed, classes, isolated=()):
    """A matrix whose rows sum to 1 with a zero diagonal, not symmetric; rows of isolated classes are zero."""
    matrix = values(seed, classes, classes).exp().fill_diagonal_(0)
    matrix = matrix / matrix.sum(-1, keepdim=True)
    matrix[list(isolated)] = 0
    return matrix


def samples(lead):
    """The indices of all samples of a leading shape."""
    return itertools.product(*map(range, lead))


def each(function, outputs, target):
    """`function(list, int)` of every sample (...,), as a tensor."""
    result = torch.empty(target.shape, dtype=torch.float64)
    for i in samples(target.shape):
        result[i] = function(outputs[i].tolist(), int(target[i]))
    return result


def each_soft(function, outputs, target, names=None):
    """The expected `function(list, int)` of every sample under class probabilities (..., K); `names[k]` is class k."""
    result = torch.empty(target.shape[:-1], dtype=torch.float64)
    for i in samples(target.shape[:-1]):
        result[i] = sum(
            weight * function(outputs[i].tolist(), k if names is None else int(names[k]))
            for k, weight in enumerate(target[i].tolist())
        )
    return result


def close(actual, expected, atol=1e-9):
    """Equal in shape and type, and in value to 1e-9 (relative where numbers are large)."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, atol=atol, rtol=1e-9)


def check_gradient(function, *inputs):
    """Double-precision gradcheck with respect to every input; what must stay constant is bound into `function`."""
    leaves = tuple(x.detach().double().clone().requires_grad_() for x in inputs)
    assert torch.autograd.gradcheck(function, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


def gradient(function, at):
    """The gradient of the summed result with respect to one input."""
    at = at.detach().clone().requires_grad_()
    function(at).sum().backward()
    assert at.grad is not None
    return at.grad


def check_alive(function, at, place):
    """Loss and gradient are finite, and the gradient at column `place` is not zero."""
    loss, grad = function(at), gradient(function, at)
    assert torch.isfinite(loss).all()
    assert torch.isfinite(grad).all()
    assert (grad[..., place] != 0).all(), f"no gradient at {place}: {grad}"
    return loss, grad


def renamed(seed, classes):
    """A random order of classes, and its inverse: `x[..., order]` holds at `place[k]` what class k had."""
    order = torch.randperm(classes, generator=torch.Generator().manual_seed(seed))
    return order, order.argsort()
