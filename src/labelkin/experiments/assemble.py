"""Store and restore the context that an objective was built from."""

from collections.abc import Mapping
from typing import Any

import torch

from labelkin.objectives import Context
from labelkin.structure import Taxonomy


def saved_context(context: Context) -> dict[str, Any]:
    """Return the context as plain values and tensors, without the data."""
    plain = context.without_data()
    assert plain.taxonomy is not None
    return {
        "classes": list(plain.classes),
        "parents": torch.from_numpy(plain.taxonomy.parents.copy()),
        "names": list(plain.taxonomy.names),
        "leaves": torch.from_numpy(plain.taxonomy.leaves.copy()),
        "samples": plain.samples,
        "similar": plain.similar,
    }


def restored_context(saved: Mapping[str, Any]) -> Context:
    """Rebuild a context from what `saved_context` returned."""
    return Context(
        classes=tuple(saved["classes"]),
        taxonomy=Taxonomy(saved["parents"].numpy(), saved["names"], saved["leaves"].numpy()),
        train_samples=saved["samples"],
        similar=saved["similar"],
    )
