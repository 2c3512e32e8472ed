"""Readers of sets of short texts with a tree of classes: CLINC150, NAICS 2012 and TREC."""

import json
import os
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_choice
from labelkin.data._dataset import RawDataset
from labelkin.data._locate import Place, find_or_download
from labelkin.data._readers.texts import TextRow, decoded, text_set
from labelkin.structure import Taxonomy

CLINC_TEXTS, CLINC_DOMAINS = "data_full.json", "domains.json"
NAICS_ITEMS = "naics-2012.json"
TREC_FILES = {"train": "train_5500.label", "test": "TREC_10.label"}
# The authors of these three publish no checksums, so they are never downloaded.
CLINC150 = Place(
    ("clinc150", "oos-eval/data"),
    lambda folder: all((folder / name).is_file() for name in (CLINC_TEXTS, CLINC_DOMAINS)),
    f"{CLINC_TEXTS} and {CLINC_DOMAINS} of CLINC150 into clinc150",
)
NAICS2012 = Place(
    ("naics2012", "naics-2012"),
    lambda folder: (folder / NAICS_ITEMS).is_file(),
    f"{NAICS_ITEMS}, the 2012 NAICS codes with their index entries, into naics2012",
)
TREC = Place(
    ("trec", "TREC"),
    lambda folder: all((folder / name).is_file() for name in TREC_FILES.values()),
    f"{' and '.join(TREC_FILES.values())} of TREC's questions into trec",
)


def read_clinc150(folder: Path) -> RawDataset:
    """Read CLINC150: 150 intents in 10 domains, with its own validation split.

    `out_of_scope` returns its queries that belong to none of the intents.
    """
    tables = {part: _clinc_rows(folder, part) for part in ("train", "val", "test")}
    domains = _read_json(folder / CLINC_DOMAINS)
    if not isinstance(domains, dict):
        raise InputError(f"{folder / CLINC_DOMAINS}: expected an object with the intents of each domain.")
    found = text_set(tables, source=str(folder))
    domain_of = {str(intent): str(domain) for domain, intents in domains.items() for intent in intents}
    missing = [name for name in found.classes if name not in domain_of]
    if missing:
        raise InputError(f"{folder / CLINC_DOMAINS}: the intent {missing[0]!r} is in none of the domains.")
    return found._replace(taxonomy=_tree("intents", ((domain_of[name], name) for name in found.classes), found.classes))


def out_of_scope(part: str = "test", *, data_dir: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Return CLINC150's queries that belong to none of its intents.

    A classifier should give no answer to them, which makes them a test of falling back.

    Args:
        part: "train", "val" or "test" (100, 100 and 1,000 queries).
        data_dir: Folder with published datasets, searched first.

    Returns:
        The queries.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from labelkin.data import out_of_scope
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "domains.json").write_text("{}")
        ...     _ = Path(folder, "data_full.json").write_text(json.dumps({"oos_test": [["who won", "oos"]]}))
        ...     out_of_scope(data_dir=folder)
        ('who won',)
    """
    check_choice("part", part, ("train", "val", "test"))
    folder = find_or_download("clinc150", CLINC150, data_dir=data_dir)
    return tuple(row.text for row in _clinc_rows(folder, f"oos_{part}"))


def _clinc_rows(folder: Path, part: str) -> list[TextRow]:
    path = folder / CLINC_TEXTS
    found = _read_json(path)
    rows = found.get(part) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 2 for row in rows):
        raise InputError(f"{path}: expected a list of pairs of text and intent under {part!r}; restore the file.")
    return [TextRow(str(label), str(text)) for text, label in rows]


NAICS_LEVELS = (
    2,
    3,
    4,
    5,
    6,
)  # digits of a sector, a subsector, an industry group, an industry and a national industry
FEWEST = 5  # texts of a class


def read_naics2012(folder: Path) -> RawDataset:
    """Read NAICS 2012: index entries such as "Canola farming", with the industries of at least 5 entries as classes.

    Classes are named by code and title, such as "111120 Oilseed (except Soybean) Farming". The tree has five levels, the first
    2, 3, 4, 5 and 6 digits of the code; two-digit codes of one sector, such as 31, 32 and 33 for manufacturing, are separate
    nodes. The set has no predefined split.
    """
    path = folder / NAICS_ITEMS
    found = _read_json(path)
    try:
        items = {str(item["code"]): item for item in found["items"]}
        texts = {code: [str(text) for text in item.get("index", ())] for code, item in items.items()}
        titles = {code: f"{code} {item['title']}" if "title" in item else code for code, item in items.items()}
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: expected an object with a list 'items' of codes and titles; restore it.") from None
    codes = [code for code in sorted(texts) if len(code) == NAICS_LEVELS[-1] and len(texts[code]) >= FEWEST]
    if not codes:
        raise InputError(f"{path}: expected industries with {FEWEST} texts or more under 'index', got none.")
    classes = tuple(titles[code] for code in codes)
    rows = [TextRow(titles[code], text) for code in codes for text in texts[code]]
    above = ([code[:digits] for digits in NAICS_LEVELS] for code in codes)
    tree = _tree("industries", ([titles.get(code, code) for code in path] for path in above), classes)
    return text_set({"train": rows}, source=str(path), classes=classes)._replace(taxonomy=tree)


TREC_TYPES = {
    "ABBR": "abb exp",
    "DESC": "def desc manner reason",
    "ENTY": """animal body color cremat currency dismed event food instru lang letter other plant product religion sport
        substance symbol techmeth termeq veh word""",
    "HUM": "desc gr ind title",
    "LOC": "city country mount other state",
    "NUM": "code count date dist money ord other perc period speed temp volsize weight",
}
TREC_CLASSES = tuple(f"{coarse}:{fine}" for coarse, names in TREC_TYPES.items() for fine in names.split())
TREC_LINE = re.compile(r"(\S+) (.*\S)\s*")
UNKNOWN_AT_MOST = 0.01


def read_trec(folder: Path) -> RawDataset:
    """Read TREC's questions: lines such as `DESC:manner How did serfdom develop ?`, 50 fine types below 6 coarse ones.

    Lines of another type are left out, since public copies have a few damaged ones.
    """
    tables = {part: _trec_rows(folder / name) for part, name in TREC_FILES.items()}
    asked = {row.label for row in tables["train"]}
    classes = tuple(name for name in TREC_CLASSES if name in asked)
    tree = _tree("questions", ((name.partition(":")[0], name) for name in classes), classes)
    return text_set(tables, source=str(folder), classes=classes)._replace(taxonomy=tree)


def _trec_rows(path: Path) -> list[TextRow]:
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        lines = content.decode("latin-1").splitlines()  # as their authors publish them
    found = [match.groups() for line in lines if (match := TREC_LINE.fullmatch(line))]
    rows = [TextRow(label, text) for label, text in found if label in TREC_CLASSES]
    if not rows or len(found) - len(rows) > UNKNOWN_AT_MOST * len(found) + 1:
        wrong = next((label for label, _ in found if label not in TREC_CLASSES), "no lines")
        raise InputError(f"{path}: expected lines such as `DESC:manner How ... ?`, got {wrong!r}; restore the file.")
    return rows


def _tree(root: str, paths: Iterable[Iterable[str]], classes: tuple[str, ...]) -> Taxonomy:
    """Build a taxonomy from the path of each class below the root."""
    edges: dict[tuple[str, str], None] = {}
    for path in paths:
        edges.update(dict.fromkeys(pairwise([root, *path])))
    return Taxonomy.from_edges(edges, classes=classes)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(decoded(path.read_bytes(), path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not a JSON file ({error}); restore it.") from None
