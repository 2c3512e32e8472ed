"""A backbone and an objective as one module, so that DDP, Fabric and compile see one `forward`."""

from typing import Any

from torch import Tensor, nn

from labelkin.objectives import Loss, Objective


class Model(nn.Module):
    """`model(x)` gives the objective's outputs, `model(x, target, ...)` its loss; in training mode that is a step.

    The loss is taken inside `forward` because data-parallel wrappers prepare their gradient exchange there.
    """

    def __init__(self, backbone: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.backbone = backbone
        self.objective = objective

    def forward(self, inputs: Any, target: Tensor | None = None, **batch: Tensor | None) -> Any:
        features = self.backbone(inputs)
        if target is None:
            return self.objective(features)
        return self.loss(features, target, **batch)

    def loss(self, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
        return self.objective.loss_from_features(features, target, **batch)
