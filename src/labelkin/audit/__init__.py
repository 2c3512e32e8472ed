"""The audit of any model from its predictions: mistakes, calibration, decisions, and the structure they suggest."""

from labelkin.audit.findings import (
    Agreement,
    Basics,
    Calibrated,
    Calibration,
    Cost,
    Crm,
    Difference,
    Fallback,
    FallbackPoint,
    Hierarchy,
    Interval,
    Pair,
    Reliability,
    Structure,
    Worst,
)
from labelkin.audit.raw import KINDS, Kind
from labelkin.audit.run import Audit, audit
from labelkin.audit.text import as_text

__all__ = [
    "KINDS",
    "Agreement",
    "Audit",
    "Basics",
    "Calibrated",
    "Calibration",
    "Cost",
    "Crm",
    "Difference",
    "Fallback",
    "FallbackPoint",
    "Hierarchy",
    "Interval",
    "Kind",
    "Pair",
    "Reliability",
    "Structure",
    "Worst",
    "as_text",
    "audit",
]
