"""The report: figures from numbers, and one page that shows them."""

from labelkin.report.read import check_classifies, read_comparisons
from labelkin.report.write import targets, write_model_page, write_report

__all__ = ["check_classifies", "read_comparisons", "targets", "write_model_page", "write_report"]
