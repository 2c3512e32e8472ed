"""The dataset `wordnet`: which kind of thing does this definition define?

The texts are the definitions of WordNet's nouns, the classes the nouns directly above them, and the tree is WordNet's.
"""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from labelkin.data._dataset import RawDataset
from labelkin.data._locate import Place, find_files
from labelkin.data._readers.texts import TextRow, text_set
from labelkin.data._sets.distinct_texts import split_texts
from labelkin.structure import Taxonomy, WordNet

FEWEST, MOST = 30, 150  # different definitions of a class: with fewer it is left out, and of more these many are kept
FILES = ("index.noun", "data.noun")
DEFINITIONS = Place(
    ("wordnet", "WordNet-3.0/dict", "corpora/wordnet"),
    lambda folder: all((folder / name).is_file() for name in FILES),
    f"{' and '.join(FILES)} of WordNet 3.0 into wordnet",
    fixed=("/usr/share/wordnet",),  # Debian's package wordnet-base
)


def read_definitions(folder: Path) -> RawDataset:
    """Read the definitions of WordNet's nouns.

    - A text is a definition, without the words that it defines and without examples of use.
    - Its class is the first noun that WordNet lists above the defined one, such as `city.n.01`. A class has at least 30
      different definitions; of more than 150, the 150 with the smallest digests are kept.
    - The tree has the nouns above the classes up to `entity.n.01`; of several parents, the one with the shortest path is kept.
    - A fifth of each class is the test split, chosen by the digests of the texts. Equal definitions are in the same split.
    """
    tables: dict[str, list[TextRow]] = {"train": [], "test": []}
    for row in rows_of(folder):
        tables[str(row.part)].append(row)
    found = text_set(tables, source=str(folder))
    tree = Taxonomy.from_wordnet(found.classes, rule="shortest", database=folder)
    return found._replace(taxonomy=tree.reorder(found.classes))


def definitions_digest() -> str | None:
    """Return the digest of the set, which differs between versions of WordNet; None if its files are missing."""
    folder = find_files(DEFINITIONS)
    return None if folder is None else sha256(repr(rows_of(folder)).encode()).hexdigest()


@lru_cache(maxsize=1)
def rows_of(folder: Path) -> list[TextRow]:
    """Return the rows of the set from a folder with WordNet's files."""
    wordnet = WordNet(folder)
    texts: dict[int, list[str]] = {}
    for synset in map(wordnet.synset, wordnet.offsets()):
        if synset.above:
            texts.setdefault(synset.above[0], []).append(synset.definition)
    named = {wordnet.synset(above).name: found for above, found in texts.items()}
    return split_texts(named, fewest=FEWEST, most=MOST)
