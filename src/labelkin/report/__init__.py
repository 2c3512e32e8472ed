"""The report: figures from numbers, and one page that shows them."""

from labelkin.report.read import read_comparisons
from labelkin.report.write import targets, write_model_page, write_report

__all__ = ["read_comparisons", "targets", "write_model_page", "write_report"]
