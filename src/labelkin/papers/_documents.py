"""docs/results.md, docs/reproduction.md and docs/choosing.md, written from results/*.json: no number in them is typed by hand.

`python -m labelkin.papers._documents` writes them; a test holds that what is committed is what it writes.
"""

import os
from pathlib import Path

from labelkin._files import write_text
from labelkin.papers._choosing import choosing
from labelkin.papers._reproduction_page import reproduction
from labelkin.papers._settings import tables
from labelkin.runs import read_results


def documents(results: str | os.PathLike[str]) -> dict[str, str]:
    """The text of each document, by file name."""
    found = read_results(results)
    return {"results.md": tables(found), "reproduction.md": reproduction(found), "choosing.md": choosing(found)}


def write_documents(results: str | os.PathLike[str], docs: str | os.PathLike[str]) -> list[Path]:
    written = []
    for name, text in documents(results).items():
        write_text(Path(docs) / name, text)
        written.append(Path(docs) / name)
    return written
