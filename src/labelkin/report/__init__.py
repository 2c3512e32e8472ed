"""The report: figures from numbers, and one page that shows them."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.report._audit_page import write_audit_page as write_audit_page
    from labelkin.report._load_comparisons import check_classifies as check_classifies
    from labelkin.report._load_comparisons import read_comparisons as read_comparisons
    from labelkin.report._write import targets as targets
    from labelkin.report._write import write_model_page as write_model_page
    from labelkin.report._write import write_report as write_report

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_load_comparisons": ["check_classifies", "read_comparisons"],
        "_write": ["targets", "write_model_page", "write_report"],
    },
    internal={
        "_audit_page": ["write_audit_page"],
    },
)
