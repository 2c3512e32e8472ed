"""Inspect a finished run for the report: load its model, outputs and data, and record why a part is missing."""

from functools import cached_property
from math import isnan
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data import ArraySplit, Dataset, Normalize
from labelkin.report._images import picture_uris
from labelkin.report._learned import (
    ClassSimilarity,
    Features,
    Projection,
    class_means,
    class_similarity,
    features_of,
    follows_tree,
    spread_over_classes,
)
from labelkin.report._mistakes import Mistakes, mistakes_of
from labelkin.report._page_model import Subject
from labelkin.report._subject import subject
from labelkin.runs import (
    DataCache,
    Predictor,
    Record,
    RunFolder,
    RunSpec,
    calibration_of,
    check_unchanged,
    load_run,
    restored_context,
)
from labelkin.structure import Taxonomy

EQUALLY_FAR, NO_WEIGHTS = "all label vectors are equally far apart", "the weights are missing"
GIVEN = "the label vectors come from the tree and are not learned"
SAMPLES = 1_000  # test samples whose features are computed
MOST_CLASSES = 300  # larger matrices are unreadable and take megabytes


class RunData:
    """The data of the compared runs.

    Args:
        config: The configuration of one of the runs.
        cache: Data sets that were read before.
    """

    def __init__(self, config: dict[str, Any], cache: DataCache | None = None) -> None:
        self.config, self.cache = config, DataCache() if cache is None else cache

    @cached_property
    def dataset(self) -> Dataset:
        """The data set; raises `InputError` if it changed since the run was trained."""
        check_unchanged(self.config)
        return self.cache.workspace(RunSpec.from_dict(self.config)).dataset

    @cached_property
    def test_sample(self) -> tuple[Tensor, Tensor]:
        """Inputs and classes of some test samples, equally many per class."""
        split = self.dataset.test
        rows = spread_over_classes(split.targets, SAMPLES)
        taken = split.take(rows)
        read = taken if isinstance(taken, ArraySplit) else taken.in_memory()
        return read.inputs, read.targets


class RunInspector:
    """Collect the parts of a run's page; each part is computed separately, so that a missing one does not affect the others.

    Args:
        record: The run.
        data: The data of the run.
        projection: How features are shown in two dimensions: "mds" or "tsne".
    """

    def __init__(self, record: Record, data: RunData, *, projection: Projection = "mds") -> None:
        self.record, self.data, self.projection = record, data, projection
        self.reasons: dict[str, str] = {}

    def subject(self, label: str) -> Subject | None:
        """Return the parts of the page; None if even the classes are unknown."""
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
            similarity=self._try("similarity", self._similarity),
            features=self._try("features", self._features),
            mistakes=mistakes,
            images=[] if mistakes is None else self._try("images", lambda: self._images(mistakes)) or [],
            reasons=self.reasons,
        )

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The tree of the run."""
        return restored_context(RunFolder(self.record.path).setup["context"]).tree()

    @cached_property
    def model(self) -> Predictor:
        """The trained model."""
        return load_run(self.record.path)

    def _try(self, part: str, make: Any) -> Any:
        """Return a part; if it cannot be computed, store the reason and return None."""
        try:
            return make()
        except (InputError, OSError) as error:
            self.reasons[part] = f"Not available: {error}"
            return None

    @cached_property
    def outputs(self) -> tuple[Tensor, Tensor]:
        """Scores and true classes of the test set."""
        saved = RunFolder(self.record.path).outputs()
        return saved["scores"], saved["target"]

    def _mistakes(self) -> Mistakes:
        _check_size(len(self.taxonomy.leaves))
        fitted = calibration_of(RunFolder(self.record.path)).temperature
        known = not isnan(fitted)
        return mistakes_of(*self.outputs, self.taxonomy, log_probs=known, temperature=fitted if known else 1.0)

    def _similarity(self) -> ClassSimilarity:
        """Compute class similarity from label vectors, or from mean scores if these show nothing or are missing."""
        classes = len(self.taxonomy.leaves)
        _check_size(classes)
        try:
            vectors, why = self.model.model.objective.label_vectors(range(classes)).detach(), EQUALLY_FAR
        except InputError:
            vectors, why = torch.eye(classes), NO_WEIGHTS
        if (found := class_similarity(vectors, self.taxonomy)) is not None:
            if not follows_tree(found, self.taxonomy):
                return found
            why = GIVEN
        means = class_means(*self.outputs)
        found = (
            None
            if means is None
            else class_similarity(means, self.taxonomy, f"the mean scores of each class, because {why}")
        )
        if found is None:
            raise InputError(f"{why}, and so are the mean scores of the classes.")
        return found

    def _features(self) -> Features:
        model = self.model
        inputs, targets = self.data.test_sample
        normalized = Normalize(model.mean, model.std)(inputs)
        dtype = next(model.model.parameters()).dtype
        return features_of(model.model, normalized.to(dtype), targets, len(model.classes), projection=self.projection)

    def _images(self, mistakes: Mistakes) -> list[tuple[str, ...]]:
        split, (_, target) = self.data.dataset.test, self.outputs
        if not torch.equal(split.targets, target):
            raise InputError("the available data differ from the test set of the run.")
        return [picture_uris(split, samples) for samples in mistakes.samples]


def _check_size(classes: int) -> None:
    if classes > MOST_CLASSES:
        raise InputError(f"{classes:,} classes are too many for a class-by-class figure; the limit is {MOST_CLASSES}.")
