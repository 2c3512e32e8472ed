"""Trees of classes: building, reading and writing them, WordNet, and the trees that ship with the package."""

from labelkin.structure import _catalogue as catalogue
from labelkin.structure._catalogue import load_tree as load_tree
from labelkin.structure._catalogue import read_paths as read_paths
from labelkin.structure._describe import Description
from labelkin.structure._distances import DISTANCES, DistanceKind
from labelkin.structure._distances import Floats as Floats
from labelkin.structure._distances import Ints as Ints
from labelkin.structure._distances import subtree_sizes as subtree_sizes
from labelkin.structure._files import yaml_problem as yaml_problem
from labelkin.structure._graph import RULES, Rule
from labelkin.structure._taxonomy import Taxonomy
from labelkin.structure._wordnet import WordNet

__all__ = ["DISTANCES", "RULES", "Description", "DistanceKind", "Rule", "Taxonomy", "WordNet", "catalogue"]
