"""Cost matrices of predictions, which are read as those of training runs are."""

from labelkin.training import CostTable as CostTable
from labelkin.training import costs_for as costs_for
from labelkin.training import costs_in_order as in_class_order
from labelkin.training import read_costs as read_costs

__all__ = ["CostTable", "costs_for", "in_class_order", "read_costs"]
