"""A backbone and an objective as one module."""

from typing import Any

from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin.functional import adjusted_logits
from labelkin.objectives import Loss, Objective


class Model(nn.Module):
    """A backbone with an objective as its head.

    `model(inputs)` returns the objective's outputs. `model(inputs, target)` returns the scalar loss, and in training mode
    updates the objective's state once. The loss is computed inside `forward`, so that `DistributedDataParallel`, Fabric and
    `torch.compile` see the whole step.

    Args:
        backbone: A module that turns inputs into features (..., F).
        objective: An objective with `features=F`.
        dropout: The probability with which a feature is set to 0 in training.
        logit_offset: (K,) numbers that are added to the logits for the loss and not for predictions, as logit adjustment
            does; for an objective whose outputs are the logits of a softmax.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from labelkin import Model, OneHot
        >>> model = Model(nn.Linear(8, 16), OneHot(3, features=16))
        >>> x, y = torch.randn(5, 8), torch.tensor([0, 1, 2, 0, 1])
        >>> model(x).shape
        torch.Size([5, 3])
        >>> model(x, y).backward()
    """

    logit_offset: Tensor | None

    def __init__(
        self,
        backbone: nn.Module,
        objective: Objective,
        *,
        dropout: float = 0.0,
        logit_offset: Tensor | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(objective, Objective):
            raise InputError(
                f"objective: expected a labelkin objective, such as a labelkin.Kin, got {objective!r:.60}."
            )
        self.backbone = backbone
        self.objective = objective
        self.dropout = nn.Dropout(dropout) if dropout else None
        self.register_buffer("logit_offset", logit_offset, persistent=False)  # predictions do not need it

    def forward(self, inputs: Any, target: Tensor | None = None, **batch: Tensor | None) -> Any:
        """Return the outputs, or the loss if a target is given.

        Args:
            inputs: Inputs of the backbone.
            target: Class positions, or class probabilities; see `Objective.loss`.
            **batch: `node`, `weight` and `index`; see `Objective.loss`.

        Returns:
            The objective's outputs, or the scalar loss.
        """
        features = self._features(inputs)
        if target is None or self.logit_offset is None:
            return self.objective(features, target, **batch)
        return self.objective.loss(self._adjusted(features), target, **batch)

    def _features(self, inputs: Any) -> Any:
        features = self.backbone(inputs)
        return features if self.dropout is None else self.dropout(features)

    def _adjusted(self, features: Tensor) -> Any:
        """Return the objective's outputs with the offset added to the logits that predict the classes."""
        assert self.logit_offset is not None
        outputs, kind = self.objective.make_outputs(features), self.objective.outputs_type
        if kind is None:
            return adjusted_logits(outputs, self.logit_offset)
        return kind(adjusted_logits(outputs[0], self.logit_offset), *outputs[1:])

    def loss(self, inputs: Any, target: Tensor, **batch: Tensor | None) -> Tensor:
        """Return the scalar loss; the same as `model(inputs, target, ...)`.

        Example:
            >>> import torch
            >>> from labelkin import Model, OneHot
            >>> model = Model(torch.nn.Identity(), OneHot(2))
            >>> model.loss(torch.zeros(1, 2), torch.tensor([0]))
            tensor(0.6931)
        """
        found: Tensor = self(inputs, target, **batch)
        return found

    def loss_terms(self, inputs: Any, target: Tensor, **batch: Tensor | None) -> Loss:
        """Return the loss with its parts, as `Objective.loss_terms` does.

        Example:
            >>> import torch
            >>> from labelkin import Model, OneHot
            >>> model = Model(torch.nn.Identity(), OneHot(2))
            >>> model.loss_terms(torch.zeros(1, 2), torch.tensor([0])).terms
            {'cross_entropy': tensor(0.6931)}
        """
        features = self._features(inputs)
        if self.logit_offset is None:
            return self.objective.loss_from_features(features, target, **batch)
        return self.objective.loss_terms(self._adjusted(features), target, **batch)
