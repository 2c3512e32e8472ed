"""One model looked into: numbers in, the parts of a page out. Runs and audited models come through here alike."""

from collections.abc import Sequence

from labelkin.report._groups import superclasses
from labelkin.report._learned import Features, Kinship, feature_panels, kinship_panels, nearest_listing
from labelkin.report._mistakes import Mistakes, decision_listing, examples, examples_note, mistake_panels
from labelkin.report._page_model import Subject
from labelkin.structure import Taxonomy

NOTHING = "There is nothing to show."


def subject(
    label: str,
    taxonomy: Taxonomy,
    *,
    tree_named: bool = True,
    facts: Sequence[str] = (),
    kinship: Kinship | None = None,
    features: Features | None = None,
    mistakes: Mistakes | None = None,
    images: Sequence[Sequence[str]] = (),
    reasons: dict[str, str] | None = None,
) -> Subject:
    """The parts of a page on one model.

    `tree_named` is False where the tree was built from data, so that its inner nodes say nothing; `images` holds data
    URIs for each of the costliest confusions; `reasons` says why "kinship", "features" or "mistakes" is not there.
    """
    groups, why = superclasses(taxonomy, named=tree_named), reasons or {}
    learned = (
        *kinship_panels(kinship, taxonomy, groups, why.get("kinship", NOTHING)),
        *feature_panels(features, taxonomy, groups, why.get("features", NOTHING)),
    )
    found = mistake_panels(mistakes, groups, why.get("mistakes", NOTHING))
    return Subject(
        label=label,
        facts=tuple(facts),
        learned=learned,
        nearest=None if kinship is None else nearest_listing(kinship),
        mistakes=found,
        examples=() if mistakes is None else examples(mistakes, images),
        examples_note=examples_note(mistakes, has_images=any(images)),
        decisions=None if mistakes is None or mistakes.cost_rule is None else decision_listing(mistakes.cost_rule),
    )
