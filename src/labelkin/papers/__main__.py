"""Write the generated documents: `python -m labelkin.papers [RESULTS] [DOCS]`, from the root of the repository."""

import sys

from labelkin._checks import InputError
from labelkin.papers._documents import write_coverage, write_documents

folders = [*sys.argv[1:], *("results", "docs")[len(sys.argv) - 1 :]]
try:
    for path in write_documents(*folders[:2]):
        print(f"wrote {path}")
    if len(sys.argv) == 1:  # other results than the repository's do not change the package
        print(f"wrote {write_coverage(folders[0])}")
except InputError as error:
    sys.exit(f"Error: {error}")
