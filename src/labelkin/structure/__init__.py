"""Class structure: trees of classes, where they come from, and those that ship with the package."""

from labelkin.structure import catalogue
from labelkin.structure.distances import DISTANCES, DistanceKind
from labelkin.structure.draw import Description
from labelkin.structure.graph import RULES, Rule
from labelkin.structure.taxonomy import Taxonomy
from labelkin.structure.wordnet import WordNet

__all__ = ["DISTANCES", "RULES", "Description", "DistanceKind", "Rule", "Taxonomy", "WordNet", "catalogue"]
