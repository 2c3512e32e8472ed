"""The answers of a run for some samples."""

from typing import NamedTuple

from torch import Tensor

from labelkin.decide import Rule


class Prediction(NamedTuple):
    """The predictions for n samples.

    Args:
        classes: The name of each answer: of a class, of an inner node of the tree, or of an action of the costs.
        positions: (n,) positions of the answers among the classes; -1 for an inner node of the tree, and for an action.
        scores: (n, K) scores of all classes: log-probabilities before calibration if the objective defines them.
        probabilities: (n,) calibrated probabilities of the answers; NaN for an action, which is no class. None if the objective
            defines none and the run held out too few samples to calibrate its scores.
        all_probabilities: (n, K) calibrated probabilities of all classes; None as above.
        nodes: (n,) nodes of the answers in the tree of the run; the indices after the last node are actions, in their order.
        rule: The rule that decided; `rule.kinds(nodes)` tells classes, inner nodes and actions apart.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> inputs = labelkin.data.load("digits").test.inputs[:3]
        >>> labelkin.load_run(run).predict(inputs).scores.shape
        torch.Size([3, 10])
    """

    classes: list[str]
    positions: Tensor
    scores: Tensor
    probabilities: Tensor | None
    all_probabilities: Tensor | None = None
    nodes: Tensor | None = None
    rule: Rule | None = None
