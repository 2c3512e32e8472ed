"""Cross entropy to rows of a class matrix: by the kernels where they are faster, otherwise with one target row per sample."""

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
        targets: returns the class matrix in a form that the kernels accept, or None.
        rows: returns the target of each sample (n, K); called if the kernels cannot be used or are not faster.
    """
    if kernels.classes_pay(outputs, target) and (matrix := targets()) is not None:
        return class_target_cross_entropy(outputs, target, matrix)
    return soft_cross_entropy(outputs, rows(), target)
