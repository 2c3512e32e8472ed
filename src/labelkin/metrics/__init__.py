"""Metrics of mistakes, each with its range, its direction and when it is undefined."""

from labelkin.metrics.basic import Metric, accuracy, mistake_severity, top_k_accuracy
from labelkin.metrics.summary import summary

__all__ = ["Metric", "accuracy", "mistake_severity", "summary", "top_k_accuracy"]
