"""Inspect a finished run for the report: what its folder and data provide, and why anything is missing."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data import ArraySplit, Dataset, Normalize
from labelkin.objectives import OBJECTIVES
from labelkin.report._images import picture_uris
from labelkin.report._learned import (
    Features,
    Kinship,
    Projection,
    class_means,
    features_of,
    kinship_of,
    spread_over_classes,
)
from labelkin.report._mistakes import Mistakes, mistakes_of
from labelkin.report._page_model import Subject
from labelkin.report._subject import subject
from labelkin.runs import DataCache, Predictor, Record, RunFolder, RunSpec, check_unchanged, load_run, restored_context
from labelkin.structure import Taxonomy

EQUALLY_FAR, NO_WEIGHTS = "its label vectors are all equally far apart", "its weights are missing"
SAMPLES = 1_000  # test samples to compute features of
MOST_CLASSES = 300  # larger matrices are unreadable and take megabytes


class Data:
    """The data of the compared runs.

    Args:
        config: The configuration of one of the runs.
        cache: Data sets that were read before.
    """

    def __init__(self, config: dict[str, Any], cache: DataCache | None = None) -> None:
        self.config, self.cache = config, DataCache() if cache is None else cache

    @cached_property
    def dataset(self) -> Dataset:
        check_unchanged(self.config)
        return self.cache.workspace(RunSpec.from_dict(self.config)).dataset

    @cached_property
    def some(self) -> tuple[Tensor, Tensor]:
        """Inputs and classes of some test samples, spread over the classes."""
        split = self.dataset.test
        rows = spread_over_classes(split.targets, SAMPLES)
        taken = split.take(rows)
        read = taken if isinstance(taken, ArraySplit) else taken.in_memory()
        return read.inputs, read.targets


class Look:
    """Collects each part of a run's page separately, so that a missing part does not affect the others."""

    def __init__(self, record: Record, data: Data, *, how: Projection = "mds") -> None:
        self.record, self.data, self.how = record, data, how
        self.reasons: dict[str, str] = {}

    def subject(self, label: str) -> Subject | None:
        """Return the parts of the page; None if not even the classes are known."""
        try:
            tree = self.taxonomy
        except InputError as error:
            self.reasons["model"] = str(error)
            return None
        mistakes = self._try("mistakes", self._mistakes)
        return subject(
            label,
            tree,
            tree_named=self.record.config["tree"] != "built",
            facts=(f"run {self.record.id}", f"seed {self.record.seed}"),
            kinship=self._try("kinship", self._kinship),
            features=self._try("features", self._features),
            mistakes=mistakes,
            images=[] if mistakes is None else self._try("images", lambda: self._images(mistakes)) or [],
            reasons=self.reasons,
        )

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return restored_context(RunFolder(self.record.path).setup["context"]).tree()

    @cached_property
    def model(self) -> Predictor:
        return load_run(self.record.path)

    def _try(self, part: str, make: Any) -> Any:
        try:
            return make()
        except (InputError, OSError) as error:
            self.reasons[part] = f"Not available: {error}"
            return None

    @cached_property
    def outputs(self) -> tuple[Tensor, Tensor]:
        found = RunFolder(self.record.path).outputs()
        return found["scores"], found["target"]

    def _mistakes(self) -> Mistakes:
        _check_size(len(self.taxonomy.leaves))
        return mistakes_of(*self.outputs, self.taxonomy, log_probs=OBJECTIVES[self.record.objective].has_probabilities)

    def _kinship(self) -> Kinship:
        """Compute kinship from label vectors; from mean scores if these are all equally far apart or missing."""
        classes = len(self.taxonomy.leaves)
        _check_size(classes)
        try:
            vectors, why = self.model.model.objective.label_vectors(range(classes)).detach(), EQUALLY_FAR
        except InputError:
            vectors, why = torch.eye(classes), NO_WEIGHTS
        if (found := kinship_of(vectors, self.taxonomy)) is not None:
            return found
        means = class_means(*self.outputs)
        found = (
            None
            if means is None
            else kinship_of(means, self.taxonomy, f"its mean scores for each class, because {why}")
        )
        if found is None:
            raise InputError(f"{why}, and the mean scores of its classes show no difference either.")
        return found

    def _features(self) -> Features:
        model = self.model
        inputs, targets = self.data.some
        normalized = Normalize(model.mean, model.std)(inputs)
        dtype = next(model.model.parameters()).dtype
        return features_of(model.model, normalized.to(dtype), targets, len(model.classes), how=self.how)

    def _images(self, mistakes: Mistakes) -> list[tuple[str, ...]]:
        split, (_, target) = self.data.dataset.test, self.outputs
        if not torch.equal(split.targets, target):
            raise InputError("the available data are not those that the run was tested on.")
        return [picture_uris(split, samples) for samples in mistakes.samples]


def _check_size(classes: int) -> None:
    if classes > MOST_CLASSES:
        raise InputError(f"{classes:,} classes are too many for a class-by-class figure; the limit is {MOST_CLASSES}.")
