"""Adapters to other libraries: scikit-learn."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.doors._sklearn import KinClassifier as KinClassifier

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_sklearn": ["KinClassifier"],
    },
)
