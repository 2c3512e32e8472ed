"""The dataset `languages`: in which language is this name?

The texts are names of countries, languages and currencies from the Unicode Common Locale Data Repository (CLDR), as the package
Babel has them. The classes are the languages, and the tree has their branches and families.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256

from labelkin._extras import MissingExtra, require
from labelkin.data._dataset import RawDataset
from labelkin.data._readers.texts import TextRow, text_set
from labelkin.data._sets.distinct_texts import split_texts
from labelkin.structure import Taxonomy

NAME = "languages"
ENGLISH = "en"
FEWEST, MOST = 400, 150  # different names of a language: with fewer it is left out, and of more these many are kept
ROOT = "language"

Branch = Mapping[str, "Branch | str"]
# Family -> branches -> languages with their codes in CLDR. A language without close relatives here is an entry of its own.
FAMILIES: Branch = {
    "Indo-European": {
        "Germanic": {
            "North Germanic": "da Danish, fo Faroese, is Icelandic, nb Norwegian Bokmål, nn Norwegian Nynorsk, sv Swedish",
            "West Germanic": """af Afrikaans, de German, frr North Frisian, fy West Frisian, gsw Swiss German, ksh Colognian,
                lb Luxembourgish, nds Low German, nl Dutch""",
        },
        "Romance": {
            "Ibero-Romance": "ast Asturian, es Spanish, gl Galician, pt Portuguese",
            "Occitano-Romance": "ca Catalan, oc Occitan",
            "Italo-Romance": "it Italian, lij Ligurian, scn Sicilian, vec Venetian",
            "Rhaeto-Romance": "lld Ladin, rm Romansh",
            "": "fr French, ro Romanian, sc Sardinian",
        },
        "Slavic": {
            "West Slavic": "cs Czech, dsb Lower Sorbian, hsb Upper Sorbian, pl Polish, sk Slovak, szl Silesian",
            "South Slavic": "bs Bosnian, hr Croatian, sl Slovenian",
        },
        "Baltic": "lt Lithuanian, lv Latvian",
        "Celtic": {"Goidelic": "ga Irish, gd Scottish Gaelic", "Brittonic": "br Breton, cy Welsh"},
        "": "ku Kurdish, sq Albanian",
    },
    "Uralic": {"Finnic": "et Estonian, fi Finnish", "": "hu Hungarian, smn Inari Sami"},
    "Turkic": {"Oghuz": "az Azerbaijani, tk Turkmen, tr Turkish", "": "uz Uzbek"},
    "Afro-Asiatic": "ha Hausa, kab Kabyle, mt Maltese, so Somali",
    "Austronesian": {
        "Malayic": "bew Betawi, id Indonesian, ms Malay",
        "Polynesian": "mi Māori, to Tongan",
        "": "jv Javanese",
    },
    "Niger-Congo": {
        "Bantu": "ln Lingala, sw Swahili, xh Xhosa, zu Zulu",
        "Kwa": "ak Akan, ee Ewe",
        "": "blo Anii, wo Wolof, yo Yoruba",
    },
    "": "eu Basque, kgp Kaingang, qu Quechua, vi Vietnamese, yrl Nheengatu",
}


def read_languages() -> RawDataset:
    """Read the names of countries, languages and currencies in languages that are written in Latin letters.

    - A text is one name, as CLDR writes it. Names that are those in English, up to case, are left out, and so is English.
    - A class is a language with at least 400 different names; of more than 150, the 150 with the smallest digests are kept.
      Constructed languages and creoles are left out, because they have no single place in a tree of descent.
    - A name may belong to several languages: "Frankrike" is France in Norwegian and in Swedish.
    - A fifth of each language is the test split, chosen by the digests of the names. Equal names are in the same split.
    """
    tables: dict[str, list[TextRow]] = {"train": [], "test": []}
    for row in rows():
        tables[str(row.part)].append(row)
    found = text_set(tables, source=NAME)
    above = {child: parent for parent, child, _ in edges()}
    pairs: dict[tuple[str, str], None] = {}
    for node in found.classes:
        while node != ROOT:
            pairs[above[node], node] = None
            node = above[node]
    return found._replace(taxonomy=Taxonomy.from_edges(pairs, classes=found.classes))


def languages_digest() -> str | None:
    """Return the digest of the set, which differs between versions of CLDR; None without Babel."""
    try:
        return sha256(repr(rows()).encode()).hexdigest()
    except MissingExtra:
        return None


@lru_cache(maxsize=1)
def rows() -> list[TextRow]:
    """Return the rows of the set from the installed version of Babel."""
    english = {name.casefold() for name in names_in(ENGLISH)}
    texts = {
        language: [name for name in names_in(code) if name.casefold() not in english]
        for _, language, code in edges()
        if code
    }
    return split_texts(texts, fewest=FEWEST, most=MOST)


def names_in(code: str) -> list[str]:
    """Return the names of countries, languages and currencies in one language."""
    babel = require("babel", extra=NAME, use=f"the data set {NAME!r}")
    locale = babel.Locale.parse(code)
    return [name for names in (locale.territories, locale.languages, locale.currencies) for name in names.values()]


def edges(branch: Branch = FAMILIES, parent: str = ROOT) -> Iterator[tuple[str, str, str]]:
    """Yield (parent, child, code of the child in CLDR, or "" for a group) for all nodes below a parent."""
    for name, below in branch.items():
        if name:
            yield parent, name, ""
        if not isinstance(below, str):
            yield from edges(below, name or parent)
            continue
        for language in below.split(","):
            code, _, own = language.strip().partition(" ")
            yield name or parent, own, code
