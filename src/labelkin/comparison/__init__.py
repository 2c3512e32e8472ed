"""Compare objectives: plans, their execution, paired statistics, summaries and tables.

Names are imported on first use, so reading results needs no torch.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.comparison._api import compare as compare
    from labelkin.comparison._api import compare_plan as compare_plan
    from labelkin.comparison._api import comparisons as comparisons
    from labelkin.comparison._api import demo as demo
    from labelkin.comparison._api import plan_for as plan_for
    from labelkin.comparison._execute import Outcome as Outcome
    from labelkin.comparison._execute import chosen as chosen
    from labelkin.comparison._execute import execute as execute
    from labelkin.comparison._execute import is_finished as is_finished
    from labelkin.comparison._execute import outlook as outlook
    from labelkin.comparison._plan import PROTOCOLS as PROTOCOLS
    from labelkin.comparison._plan import Arm as Arm
    from labelkin.comparison._plan import Plan as Plan
    from labelkin.comparison._plan import Planned as Planned
    from labelkin.comparison._plan import read_plan as read_plan
    from labelkin.comparison._statistics import Paired as Paired
    from labelkin.comparison._statistics import better_by_chance as better_by_chance
    from labelkin.comparison._statistics import paired as paired
    from labelkin.comparison._summary import REFERENCE as REFERENCE
    from labelkin.comparison._summary import Comparison as Comparison
    from labelkin.comparison._summary import Row as Row
    from labelkin.comparison._summary import by_setting as by_setting
    from labelkin.comparison._summary import comparison_titles as comparison_titles
    from labelkin.comparison._summary import only as only
    from labelkin.comparison._summary import summarise as summarise
    from labelkin.comparison._summary import tree_in_words as tree_in_words
    from labelkin.comparison._table import SHORT as SHORT
    from labelkin.comparison._table import UNDEFINED as UNDEFINED
    from labelkin.comparison._table import as_csv as as_csv
    from labelkin.comparison._table import as_markdown as as_markdown
    from labelkin.comparison._table import cells as cells
    from labelkin.comparison._table import columns_of as columns_of
    from labelkin.comparison._table import headings as headings
    from labelkin.comparison._table import notes as notes
    from labelkin.comparison._table import verdict as verdict

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_api": ["compare", "compare_plan"],
        "_execute": ["Outcome", "chosen", "execute", "outlook"],
        "_plan": ["Arm", "PROTOCOLS", "Plan", "Planned", "read_plan"],
        "_summary": ["Comparison", "Row", "summarise"],
    },
    internal={
        "_api": ["comparisons", "demo", "plan_for"],
        "_execute": ["is_finished"],
        "_statistics": ["Paired", "better_by_chance", "paired"],
        "_summary": ["REFERENCE", "by_setting", "comparison_titles", "only", "tree_in_words"],
        "_table": [
            "SHORT",
            "UNDEFINED",
            "as_csv",
            "as_markdown",
            "cells",
            "columns_of",
            "headings",
            "notes",
            "verdict",
        ],
    },
)
