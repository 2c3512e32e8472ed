"""Mixing weights of 004: one eps, one per class, or a matrix; fixed, learned within bounds, or learned with penalties."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin.functional import (
    ClassTargets,
    DenseTargets,
    bounded_eps,
    bounded_eps_inverse,
    class_penalty,
    is_soft,
    largest_share,
    led_matrix,
    log_barrier,
    matrix_penalty,
    mixed_rows,
)
from labelkin.relations import Rows, mixed_targets, read_numbers


class Penalty(NamedTuple):
    """The weights of 004 Eq. 10 and 11, for which no values are published."""

    alpha: float
    beta: float
    gamma: float
    eta: float
    p: float
    hinge: bool


class Mixing(nn.Module, ABC):
    """Targets `T` that may have parameters. `free` is None for fixed targets, or the constraint: "exact" or "penalty"."""

    def __init__(self, classes: int, free: str | None) -> None:
        super().__init__()
        self.classes = classes
        self.free = free

    def hold(self, value: Tensor) -> Tensor:
        """Return a parameter where the mixing is learned, else a constant."""
        value = value.detach().clone()
        return value if self.free is None else nn.Parameter(value)

    @abstractmethod
    def mixture(self) -> Tensor:
        """Return the current targets, (K, K)."""

    @abstractmethod
    def class_eps(self) -> Tensor:
        """Return the share that each class gives away, (K,)."""

    @abstractmethod
    def prior(self) -> Tensor:
        """Return the log barrier that keeps exact mixing off the bounds of its interval."""

    @abstractmethod
    def penalty(self, weights: Penalty) -> Tensor:
        """Return the penalties of 004."""

    def class_targets(self) -> ClassTargets | None:
        """Return fixed targets in a form that `class_target_cross_entropy` takes; None if they are learned or have none."""
        return None if self.free is not None else self._fixed_targets()

    @abstractmethod
    def _fixed_targets(self) -> ClassTargets | None:
        """Return the targets as constants."""

    def forward(self, target: Tensor, dtype: torch.dtype) -> Tensor:
        """Return (n, K) rows of T for class positions, or their mixture for class probabilities."""
        matrix = self.mixture().to(dtype)
        return target @ matrix if is_soft(target) else matrix[target]


class EpsMixing(Mixing):
    """`T = (1 - eps) I + eps A` with one eps, or one per class (004 Eq. 4 and 6); only the rows of a batch are computed."""

    value: Tensor

    def __init__(self, relation: Rows, eps: Tensor, free: str | None) -> None:
        super().__init__(relation.classes, free)
        self._relation = (relation,)  # in a tuple: a submodule would be saved twice, here and in the objective
        start = self.hold(bounded_eps_inverse(eps) if free == "exact" else eps)
        if isinstance(start, nn.Parameter):
            self.value = start
        else:
            self.register_buffer("value", start)

    @property
    def relation(self) -> Rows:
        return self._relation[0]

    def class_eps(self) -> Tensor:
        eps = bounded_eps(self.value) if self.free == "exact" else self.value
        return torch.where(self.relation.isolated(), torch.zeros_like(eps), eps)

    def mixture(self) -> Tensor:
        eps = self.class_eps()
        everyone = torch.arange(self.classes, device=eps.device)
        return mixed_rows(self.relation.dense().to(eps.dtype), eps, everyone)

    def forward(self, target: Tensor, dtype: torch.dtype) -> Tensor:
        if is_soft(target):
            return super().forward(target, dtype)
        eps = self.class_eps().to(dtype)[target]
        return mixed_rows(self.relation(target).to(dtype), eps, target)

    def _fixed_targets(self) -> ClassTargets | None:
        return mixed_targets(self.relation, self.class_eps())

    def prior(self) -> Tensor:
        return log_barrier(self.value)

    def penalty(self, weights: Penalty) -> Tensor:
        eps = self.value.expand(self.classes)
        row_sums = torch.ones_like(eps)  # an isolated class keeps its one-hot row, which sums to 1 as well
        return class_penalty(eps, row_sums, alpha=weights.alpha, beta=weights.beta, gamma=weights.gamma, p=weights.p)


class MatrixMixing(Mixing):
    """A whole matrix T (004 Eq. 9): E itself, or parameters of a matrix whose diagonal leads by the margin.

    The row of an isolated class stays one-hot under exact learning.
    """

    matrix: Tensor
    isolated: Tensor

    def __init__(self, start: Tensor, isolated: Tensor, margin: float, free: str | None) -> None:
        super().__init__(len(start), free)
        self.margin = margin
        share = 1 - start.diagonal()
        self.register_buffer("isolated", isolated)
        if free != "exact":
            held = self.hold(start)
            if isinstance(held, nn.Parameter):
                self.matrix = held
            else:
                self.register_buffer("matrix", held)
            return
        itself = torch.eye(self.classes, dtype=torch.bool)
        others = (start / torch.where(share > 0, share, 1).unsqueeze(-1)).masked_fill(itself, 0)  # 0 for a one-hot row
        fraction = share / largest_share(others, torch.tensor(margin))
        self.theta = nn.Parameter(others.clamp_min(1e-6).log())
        self.share_theta = nn.Parameter(torch.logit(fraction.clamp(1e-4, 1 - 1e-4)))

    def mixture(self) -> Tensor:
        if self.free != "exact":
            return self.matrix
        margin = torch.full_like(self.share_theta, self.margin)
        led = led_matrix(self.theta, self.share_theta, margin)
        one_hot = torch.eye(self.classes, dtype=led.dtype, device=led.device)
        return torch.where(self.isolated.unsqueeze(-1), one_hot, led)

    def class_eps(self) -> Tensor:
        return 1 - self.mixture().diagonal()

    def _fixed_targets(self) -> ClassTargets:
        return DenseTargets(self.matrix)

    def prior(self) -> Tensor:
        return log_barrier(self.share_theta)

    def penalty(self, weights: Penalty) -> Tensor:
        margin = self.matrix.new_full((self.classes,), self.margin)
        return matrix_penalty(self.matrix, margin, **weights._asdict())


def mixing_of(kind: str, relation: Rows, eps: Any, *, margin: float, free: str | None) -> Mixing:
    """Return the mixing of a `kind` ("shared", "class" or "matrix") that starts at `eps`, after checking `eps`."""
    start = _checked_eps(eps, kind, relation.classes)
    if kind != "matrix":
        return EpsMixing(relation, start, free)
    if start.dim() < 2:
        start = EpsMixing(relation, start, None).mixture()
    return MatrixMixing(start, relation.isolated(), margin, free)


def _checked_eps(eps: Any, kind: str, classes: int) -> Tensor:
    values = read_numbers("eps", eps).to(torch.get_default_dtype())
    shapes: list[tuple[int, ...]] = [(), (classes,), (classes, classes)]
    shapes = shapes[: {"shared": 1, "class": 2, "matrix": 3}[kind]]
    if tuple(values.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise InputError(f"eps: expected shape {expected} with mixing={kind!r}, got {tuple(values.shape)}.")
    if values.dim() == 2:
        return _checked_matrix(values)
    if not bool(((values >= 0) & (values <= 0.5)).all()):
        raise InputError(f"eps: expected numbers in [0, 0.5], got {eps!r}.")
    return values.expand(classes) if kind == "class" else values


def _checked_matrix(matrix: Tensor) -> Tensor:
    off_diagonal = matrix - torch.diag_embed(matrix.diagonal())
    distribution = torch.isfinite(matrix).all() & (matrix >= 0).all() & ((matrix.sum(-1) - 1).abs() < 1e-5).all()
    if not bool(distribution):
        raise InputError("eps: expected a matrix whose rows are distributions: finite, at least 0, summing to 1.")
    if bool((matrix.diagonal() <= off_diagonal.max(-1).values).any()):
        raise InputError("eps: expected a matrix whose diagonal is the largest entry of each row.")
    return matrix
