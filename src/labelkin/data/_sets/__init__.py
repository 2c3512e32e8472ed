"""Readers of the published datasets."""
