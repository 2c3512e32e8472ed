"""Adapters to other libraries: scikit-learn here, and `labelkin.doors.transformers` and `labelkin.doors.lightning`."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.doors._least_cost import LeastCostClassifier as LeastCostClassifier
    from labelkin.doors._scorers import hierarchical_f1_scorer as hierarchical_f1_scorer
    from labelkin.doors._scorers import mean_cost_scorer as mean_cost_scorer
    from labelkin.doors._sklearn import KinClassifier as KinClassifier

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_least_cost": ["LeastCostClassifier"],
        "_scorers": ["hierarchical_f1_scorer", "mean_cost_scorer"],
        "_sklearn": ["KinClassifier"],
    },
)
