"""Headings that tell comparisons apart."""

from collections.abc import Sequence
from json import dumps
from typing import Any

from labelkin.experiments.comparison import NO_MATTER, Comparison
from labelkin.experiments.store import Record


def told_apart(compared: Sequence[Comparison]) -> list[str]:
    """Return a heading for each comparison: data, backbone, tree, and the options in which they differ."""
    facts = [_facts(comparison) for comparison in compared]
    names = list(dict.fromkeys(name for fact in facts for name in fact))
    differing = [name for name in names if len({dumps(fact.get(name), sort_keys=True) for fact in facts}) > 1]
    return [
        ", ".join(
            [_heading(one), *(f"{name} {_in_words(fact[name]) if name in fact else 'default'}" for name in differing)]
        )
        for one, fact in zip(compared, facts, strict=True)
    ]


def _heading(comparison: Comparison) -> str:
    return f"{comparison.data}, {_any_record(comparison).backbone}, the tree {comparison.tree}"


def _any_record(comparison: Comparison) -> Record:
    return next(record for runs in (*comparison.records.values(), comparison.unfinished) for record in runs)


def _facts(comparison: Comparison) -> dict[str, Any]:
    config = _any_record(comparison).config
    training = {name: value for name, value in config["settings"].items() if name not in NO_MATTER}
    return {**training, **config["data_options"]}


def _in_words(value: Any) -> str:
    """Join the parts of a list."""
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return "+".join(map(str, parts)) or "none"
