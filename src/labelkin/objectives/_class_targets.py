"""Cross entropy to rows of a class matrix: by the kernels where they pay, otherwise to rows of the batch's size."""

from collections.abc import Callable

from torch import Tensor

from labelkin.functional import ClassTargets, class_target_cross_entropy, kernels, soft_cross_entropy


def class_target_losses(
    outputs: Tensor, target: Tensor, targets: Callable[[], ClassTargets | None], rows: Callable[[], Tensor]
) -> Tensor:
    """Return one loss per sample.

    Args:
        outputs: (n, K) logits.
        target: class positions (n,) or class probabilities (n, K).
        targets: returns the class matrix, or None if there is no form of it that the kernels take.
        rows: returns the target of each sample (n, K); called if the kernels cannot be used or do not pay.
    """
    if kernels.classes_pay(outputs, target) and (matrix := targets()) is not None:
        return class_target_cross_entropy(outputs, target, matrix)
    return soft_cross_entropy(outputs, rows(), target)
