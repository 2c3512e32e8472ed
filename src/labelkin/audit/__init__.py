"""Audit any model from its predictions (mistakes, calibration, decisions, structure), and write better decisions for them."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.audit._audit import Audit as Audit
    from labelkin.audit._audit import audit as audit
    from labelkin.audit._confusion_tree import Agreement as Agreement
    from labelkin.audit._confusion_tree import Pair as Pair
    from labelkin.audit._confusion_tree import Structure as Structure
    from labelkin.audit._decide_file import FileDecisions as FileDecisions
    from labelkin.audit._decide_file import decide_file as decide_file
    from labelkin.audit._decision_findings import ActionCount as ActionCount
    from labelkin.audit._decision_findings import Advice as Advice
    from labelkin.audit._decision_findings import Crm as Crm
    from labelkin.audit._decision_findings import Fallback as Fallback
    from labelkin.audit._decision_findings import FallbackPoint as FallbackPoint
    from labelkin.audit._decision_findings import LevelRisk as LevelRisk
    from labelkin.audit._decision_findings import Saving as Saving
    from labelkin.audit._findings import Basics as Basics
    from labelkin.audit._findings import Calibrated as Calibrated
    from labelkin.audit._findings import Calibration as Calibration
    from labelkin.audit._findings import Cost as Cost
    from labelkin.audit._findings import Difference as Difference
    from labelkin.audit._findings import Hierarchy as Hierarchy
    from labelkin.audit._findings import Interval as Interval
    from labelkin.audit._findings import Reliability as Reliability
    from labelkin.audit._findings import Worst as Worst
    from labelkin.audit._schema import KINDS as KINDS
    from labelkin.audit._schema import Kind as Kind
    from labelkin.audit._text import as_text as as_text

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_audit": ["Audit", "audit"],
        "_confusion_tree": ["Agreement", "Pair", "Structure"],
        "_decide_file": ["FileDecisions", "decide_file"],
        "_decision_findings": ["ActionCount", "Advice", "Crm", "Fallback", "FallbackPoint", "LevelRisk", "Saving"],
        "_findings": [
            "Basics",
            "Calibrated",
            "Calibration",
            "Cost",
            "Difference",
            "Hierarchy",
            "Interval",
            "Reliability",
            "Worst",
        ],
        "_schema": ["KINDS", "Kind"],
        "_text": ["as_text"],
    },
)
