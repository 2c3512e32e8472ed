"""Compare objectives: plans, their execution, paired statistics, summaries and tables.

Names are imported on first use, so reading results needs no torch.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.comparison._api import compare as compare
    from labelkin.comparison._api import compare_plan as compare_plan
    from labelkin.comparison._api import compare_stored_runs as compare_stored_runs
    from labelkin.comparison._api import first_spec as first_spec
    from labelkin.comparison._api import plan_for as plan_for
    from labelkin.comparison._cost_verdict import decides_on_cost as decides_on_cost
    from labelkin.comparison._crossed import Crossed as Crossed
    from labelkin.comparison._crossed import crossed as crossed
    from labelkin.comparison._demo import Demo as Demo
    from labelkin.comparison._demo import demo as demo
    from labelkin.comparison._differences import setting_differences as setting_differences
    from labelkin.comparison._estimate import estimate as estimate
    from labelkin.comparison._execute import Outcome as Outcome
    from labelkin.comparison._execute import best_grid_points as best_grid_points
    from labelkin.comparison._execute import check_how as check_how
    from labelkin.comparison._execute import check_runs as check_runs
    from labelkin.comparison._execute import describe_plan as describe_plan
    from labelkin.comparison._execute import execute as execute
    from labelkin.comparison._plan import PROTOCOLS as PROTOCOLS
    from labelkin.comparison._plan import Arm as Arm
    from labelkin.comparison._plan import Plan as Plan
    from labelkin.comparison._plan import Planned as Planned
    from labelkin.comparison._plan_file import read_plan as read_plan
    from labelkin.comparison._rows import DECIDING as DECIDING
    from labelkin.comparison._rows import Row as Row
    from labelkin.comparison._rows import rows_of_decisions as rows_of_decisions
    from labelkin.comparison._statistics import Paired as Paired
    from labelkin.comparison._statistics import better_by_chance as better_by_chance
    from labelkin.comparison._statistics import paired as paired
    from labelkin.comparison._statistics import seeds_to_settle as seeds_to_settle
    from labelkin.comparison._summary import REFERENCE as REFERENCE
    from labelkin.comparison._summary import Comparison as Comparison
    from labelkin.comparison._summary import comparison_titles as comparison_titles
    from labelkin.comparison._summary import describe_tree as describe_tree
    from labelkin.comparison._summary import group_by_setting as group_by_setting
    from labelkin.comparison._summary import runs_with_labels as runs_with_labels
    from labelkin.comparison._summary import summarize as summarize
    from labelkin.comparison._table import UNDEFINED as UNDEFINED
    from labelkin.comparison._table import comparison_as_csv as comparison_as_csv
    from labelkin.comparison._table import comparison_as_markdown as comparison_as_markdown
    from labelkin.comparison._table import comparison_notes as comparison_notes
    from labelkin.comparison._table import table_cells as table_cells
    from labelkin.comparison._table import table_columns as table_columns
    from labelkin.comparison._table import table_headings as table_headings
    from labelkin.comparison._table import terminal_columns as terminal_columns
    from labelkin.comparison._verdict import Verdict as Verdict
    from labelkin.comparison._verdict import signed as signed
    from labelkin.comparison._work import is_finished as is_finished

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_api": ["compare", "compare_plan"],
        "_execute": ["Outcome", "execute"],
        "_plan": ["Arm", "Plan", "Planned"],
        "_plan_file": ["read_plan"],
        "_rows": ["Row"],
        "_summary": ["Comparison", "summarize"],
        "_verdict": ["Verdict"],
    },
    internal={
        "_cost_verdict": ["decides_on_cost"],
        "_crossed": ["Crossed", "crossed"],
        "_differences": ["setting_differences"],
        "_api": ["compare_stored_runs", "first_spec", "plan_for"],
        "_demo": ["Demo", "demo"],
        "_estimate": ["estimate"],
        "_execute": ["best_grid_points", "check_how", "check_runs", "describe_plan"],
        "_plan": ["PROTOCOLS"],
        "_rows": ["DECIDING", "rows_of_decisions"],
        "_statistics": ["Paired", "better_by_chance", "paired", "seeds_to_settle"],
        "_summary": [
            "REFERENCE",
            "group_by_setting",
            "comparison_titles",
            "runs_with_labels",
            "describe_tree",
        ],
        "_table": [
            "UNDEFINED",
            "comparison_as_csv",
            "comparison_as_markdown",
            "table_cells",
            "table_columns",
            "table_headings",
            "comparison_notes",
            "terminal_columns",
        ],
        "_verdict": ["signed"],
        "_work": ["is_finished"],
    },
)
