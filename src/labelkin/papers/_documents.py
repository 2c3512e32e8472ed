"""Generate docs/results.md, docs/reproduction.md, docs/choosing.md and docs/leaderboard.md from the results files in results/.

`python -m labelkin.papers` writes them, and what is measured into the package; tests check that the committed files are up to
date.
"""

import os
from pathlib import Path

from labelkin._files import write_text
from labelkin.papers._choosing import choosing_page
from labelkin.papers._coverage import coverage, coverage_file, coverage_text
from labelkin.papers._evidence import evidence, read_untrained, without_published
from labelkin.papers._leaderboard import leaderboard_page
from labelkin.papers._reproduction_page import reproduction_page
from labelkin.papers._settings import results_page
from labelkin.runs import read_results


def documents(results: str | os.PathLike[str]) -> dict[str, str]:
    """Return the text of each generated document.

    Args:
        results: The folder of the results files.

    Returns:
        The text by file name.

    Example:
        >>> import tempfile
        >>> from labelkin.papers import documents
        >>> list(documents(tempfile.mkdtemp()))
        ['results.md', 'reproduction.md', 'choosing.md', 'leaderboard.md']
    """
    files = read_results(results)
    clean = without_published(files)
    return {
        "results.md": results_page(files),
        "reproduction.md": reproduction_page(files, read_untrained(results)),
        "choosing.md": choosing_page(clean),
        "leaderboard.md": leaderboard_page(clean),
    }


def write_documents(results: str | os.PathLike[str], docs: str | os.PathLike[str]) -> list[Path]:
    """Write the generated documents.

    Args:
        results: The folder of the results files.
        docs: The folder to write the documents to.

    Returns:
        The files written.

    Example:
        >>> import tempfile
        >>> from labelkin.papers import write_documents
        >>> [path.name for path in write_documents(tempfile.mkdtemp(), tempfile.mkdtemp())]
        ['results.md', 'reproduction.md', 'choosing.md', 'leaderboard.md']
    """
    written = []
    for name, text in documents(results).items():
        write_text(Path(docs) / name, text)
        written.append(Path(docs) / name)
    return written


def coverage_of(results: str | os.PathLike[str]) -> str:
    """Return the text of published/coverage.json for a folder of results files."""
    return coverage_text(coverage(evidence(read_results(results), read_untrained(results))))


def write_coverage(results: str | os.PathLike[str]) -> Path:
    """Write published/coverage.json into the package, for `labelkin reproduce --list`."""
    path = coverage_file()
    write_text(path, coverage_of(results))
    return path
