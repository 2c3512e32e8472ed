"""The details of one model for a page, from numbers; for runs and for audited models."""

from collections.abc import Sequence

from labelkin.report._groups import superclasses
from labelkin.report._learned import ClassSimilarity, Features, feature_panels, nearest_listing, similarity_panels
from labelkin.report._mistakes import Mistakes, costliest_part, decision_listing, mistake_panels
from labelkin.report._page_model import Costliest, Subject
from labelkin.structure import Taxonomy

NOTHING = "Not available."


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
