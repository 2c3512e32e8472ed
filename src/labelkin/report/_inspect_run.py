"""Inspect a finished run for the report: load its model, outputs and data, and record why a part is missing."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from math import isnan
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.data import ArraySplit, Dataset, Normalize, Split, UnreadableImage
from labelkin.report._groups import superclasses
from labelkin.report._learned import (
    ClassSimilarity,
    Features,
    Projection,
    class_means,
    class_similarity,
    feature_panels,
    features_of,
    follows_tree,
    nearest_listing,
    similarity_panels,
    spread_over_classes,
)
from labelkin.report._mistakes import Mistakes, costliest_part, decision_listing, mistake_panels, mistakes_of
from labelkin.report._page_model import Costliest, Subject
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

NOTHING = "Not available."
SIDE = 64  # pixels; larger images are scaled down
EQUALLY_FAR, NO_WEIGHTS = "all label vectors are equally far apart", "the weights are missing"
GIVEN = "the label vectors come from the tree and are not learned"
SAMPLES = 1_000  # test samples whose features are computed
MOST_CLASSES = 300  # larger matrices are unreadable and take megabytes


def subject(
    label: str,
    taxonomy: Taxonomy,
    *,
    tree_named: bool = True,
    facts: Sequence[str] = (),
    similarity: ClassSimilarity | None = None,
    features: Features | None = None,
    mistakes: Mistakes | None = None,
    images: Sequence[Sequence[str]] = (),
    reasons: dict[str, str] | None = None,
) -> Subject:
    """Return the details of one model.

    Args:
        label: The name of the model.
        taxonomy: The tree over the classes.
        tree_named: Whether inner nodes have meaningful names; false for a tree built from data.
        facts: Short facts shown first.
        similarity: Class similarity.
        features: Features of test samples.
        mistakes: Mistakes on the test set.
        images: Data URIs of images for each of the costliest confusions.
        reasons: Why "similarity", "features", "mistakes" or "images" is missing.
    """
    groups, why = superclasses(taxonomy, named=tree_named), reasons or {}
    learned = (
        *similarity_panels(similarity, taxonomy, groups, why.get("similarity", NOTHING)),
        *feature_panels(features, taxonomy, groups, why.get("features", NOTHING)),
    )
    panels = mistake_panels(mistakes, groups, why.get("mistakes", NOTHING))
    return Subject(
        label=label,
        facts=tuple(facts),
        learned=learned,
        nearest=None if similarity is None else nearest_listing(similarity),
        mistakes=panels,
        costliest=_costliest(mistakes, images, why.get("images", ""), wide=panels[0].wide),
        decisions=None if mistakes is None or mistakes.cost_rule is None else decision_listing(mistakes.cost_rule),
    )


def _costliest(mistakes: Mistakes | None, images: Sequence[Sequence[str]], why: str, *, wide: bool) -> Costliest:
    found = costliest_part(None if mistakes is None else mistakes.costliest, images, wide=wide)
    return found._replace(note=f"{found.note} Pictures are missing. {why}") if found.examples and why else found


def picture_uris(split: Split, positions: Sequence[int]) -> tuple[str, ...]:
    """Return PNG data URIs of samples; an empty tuple if the samples are not images."""
    if len(split.shape) != 3 or split.shape[0] not in (1, 3):
        return ()
    return tuple(uri for position in positions if (uri := _uri(split, position)))


def _uri(split: Split, position: int) -> str:
    try:
        image = split.inputs[position] if isinstance(split, ArraySplit) else split.read(position)
    except UnreadableImage:
        return ""
    return png_uri(image)


def png_uri(image: Tensor) -> str:
    """Return an image (C, H, W) as a data URI; values other than bytes are scaled to the range from 0 to 255."""
    pillow = require("PIL.Image", extra="data", use="pictures in a report")
    pixels = image if image.dtype == torch.uint8 else _as_bytes(image.float())
    array = pixels.permute(1, 2, 0).squeeze(-1).contiguous().numpy()
    picture = pillow.fromarray(array)
    picture.thumbnail((SIDE, SIDE))
    file = BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def _as_bytes(image: Tensor) -> Tensor:
    low, high = float(image.min()), float(image.max())
    return ((image - low) / ((high - low) or 1.0) * 255).round().to(torch.uint8)


class RunData:
    """The data of the compared runs.

    Args:
        config: The configuration of one of the runs.
        cache: Data sets that are already loaded.
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
