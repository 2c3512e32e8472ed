"""Readers of arrays, images, folders, tables and texts."""
