"""Metrics on a tree that accumulate over batches and processes, as torchmetrics classes."""

from typing import Any

from torch import Tensor

from labelkin._arrays import check_class_positions, ranked
from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin.metrics import _basic as basic
from labelkin.metrics import _hierarchical as hierarchical
from labelkin.metrics._hierarchical import Positions
from labelkin.metrics._torchmetrics_base import MeanMetric, TreeMetric, device_of, values_are_read
from labelkin.metrics._tree_tensors import class_distances
from labelkin.metrics._validation import check_scores
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy


class MistakeSeverity(MeanMetric, TreeMetric):
    """Accumulate `labelkin.metrics.mistake_severity` of predicted and true classes; lower is better, NaN without mistakes.

    Args:
        taxonomy: The tree of the classes.
        distance: The kind of distance; see `Taxonomy.distance`.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metric = metrics.MistakeSeverity(taxonomy=tree)
        >>> metric.update(torch.tensor([1, 2]), torch.tensor([0, 2]))
        >>> metric.compute()
        tensor(1., dtype=torch.float64)
    """

    higher_is_better = False
    _what = "mistakes"

    def __init__(self, *, taxonomy: Taxonomy, distance: DistanceKind = "height", **settings: Any) -> None:
        super().__init__(**settings)
        check_choice("distance", distance, DISTANCES)
        self._keep_tree(taxonomy)
        self.distance = distance
        self._tell_apart(type(self).__name__, taxonomy, distance)

    def update(self, given: Tensor, target: Tensor) -> None:
        classes, read = len(self.taxonomy.leaves), values_are_read(given)
        basic.check_alike(given, target, classes, read_values=read)
        check_class_positions("predicted", given, classes, read_values=read)
        wrong = given != target  # the distance of a class to itself is 0
        distances = class_distances(self._tree(device_of(given)), self.distance, target, given)
        self.total += distances.sum().to(self.total.device)
        self.count += wrong.sum().to(self.count.device)


class AverageDistance(MeanMetric, TreeMetric):
    """Accumulate `labelkin.metrics.average_distance` of scores and true classes; lower is better.

    Args:
        taxonomy: The tree of the classes.
        k: The number of best classes.
        distance: The kind of distance; see `Taxonomy.distance`.
        kind: The former name of `distance`, deprecated.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metric = metrics.AverageDistance(taxonomy=tree, k=2)
        >>> metric.update(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = False

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        k: int = 1,
        distance: DistanceKind = "height",
        kind: DistanceKind | None = None,
        **settings: Any,
    ) -> None:
        distance = renamed("distance", distance, "kind", kind)
        super().__init__(**settings)
        check_count("k", k)
        check_choice("distance", distance, DISTANCES)
        self._keep_tree(taxonomy)
        if k > len(taxonomy.leaves):
            raise InputError(f"k: expected at most the number of classes, {len(taxonomy.leaves)}, got {k}.")
        self.k, self.distance = k, distance
        self._tell_apart(type(self).__name__, taxonomy, k, distance)

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        check_scores("scores", given, target, len(self.taxonomy.leaves), read_values=read_values)
        tree = self._tree(device_of(given))
        return class_distances(tree, self.distance, target.unsqueeze(-1), ranked(given, self.k)).mean(-1)


class _Ancestors(TreeMetric):
    """Sums of predicted, true and shared ancestors."""

    higher_is_better = True
    plot_upper_bound = 1.0
    shared: Tensor
    predicted: Tensor
    true: Tensor

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        predicted_as: Positions = "classes",
        target_as: Positions = "classes",
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        hierarchical.check_positions_as(predicted_as, target_as)
        self._keep_tree(taxonomy)
        self.predicted_as, self.target_as = predicted_as, target_as
        self._add_sums("shared", "predicted", "true")
        self._tell_apart(taxonomy, predicted_as, target_as)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        counts = hierarchical.ancestor_counts(
            predicted,
            target,
            self._tree(device_of(predicted)),
            predicted_as=self.predicted_as,
            target_as=self.target_as,
            read_values=values_are_read(predicted),
        )
        self.shared += counts.shared.sum().to(self.shared.device)
        self.predicted += counts.predicted.sum().to(self.predicted.device)
        self.true += counts.true.sum().to(self.true.device)


class HierarchicalPrecision(_Ancestors):
    """Accumulate `labelkin.metrics.hierarchical_precision`: 0 to 1, higher is better.

    Args:
        taxonomy: The tree of the classes.
        predicted_as: `"classes"` or `"nodes"`; see the function.
        target_as: The same for the target.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metric = metrics.HierarchicalPrecision(taxonomy=tree)
        >>> metric.update(torch.tensor([1]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.predicted)


class HierarchicalRecall(_Ancestors):
    """Accumulate `labelkin.metrics.hierarchical_recall`: 0 to 1, higher is better.

    The arguments are those of `HierarchicalPrecision`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metric = metrics.HierarchicalRecall(taxonomy=tree, predicted_as="nodes")
        >>> metric.update(torch.tensor([tree.node("animal")]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.true)


class HierarchicalF1(_Ancestors):
    """Accumulate `labelkin.metrics.hierarchical_f1`: 0 to 1, higher is better.

    The arguments are those of `HierarchicalPrecision`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metric = metrics.HierarchicalF1(taxonomy=tree)
        >>> metric.update(torch.tensor([1, 2]), torch.tensor([0, 2]))
        >>> metric.compute()
        tensor(0.7500, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        return self._divided(2 * self.shared, self.predicted + self.true)
