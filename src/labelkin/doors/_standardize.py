"""Standardization of the estimator's columns; rows of a sparse matrix become dense when they are taken."""

# ruff: noqa: N803  (X is scikit-learn's own name)

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from torch import Tensor

from labelkin._sparse_rows import SparseRows

Floats = npt.NDArray[np.floating[Any]]


def fitted_scaler(X: Any, weight: Floats) -> StandardScaler:
    """Return a scaler with the mean and deviation of the columns, which standardizes dense rows."""
    if not issparse(X):
        return StandardScaler().fit(X, sample_weight=weight)
    rows: Any = X
    if not rows.has_canonical_format:  # the deviation would be that of the entries, of which a cell may have several
        rows = rows.copy()
        rows.sum_duplicates()
    scaler = StandardScaler(with_mean=False).fit(rows, sample_weight=weight)  # scikit-learn centers no sparse matrix
    return scaler.set_params(with_mean=True)  # but it computed the mean


def standardized(X: Any, scaler: StandardScaler, dtype: npt.DTypeLike) -> Tensor | SparseRows:
    """Standardize in the precision of X, then round to that of the network; sparse rows when they are taken."""

    def dense(rows: Any) -> Tensor:
        return torch.from_numpy(check_array(scaler.transform(rows), dtype=dtype, input_name="X"))

    if not issparse(X):
        return dense(X)
    return SparseRows(X, lambda rows: dense(rows.toarray()), torch.float64 if dtype == np.float64 else torch.float32)
