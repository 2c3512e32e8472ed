"""`make wheel` runs this with the built wheel and nothing of the checkout: what an installation needs is in it."""

import importlib.metadata
import sys
from pathlib import Path

import torch

import labelkin

PACKAGE = Path(labelkin.__file__).parent
SOURCE = Path(__file__).resolve().parents[1] / "src" / "labelkin"


def files(folder: Path) -> set[str]:
    """Return the files of a package, without what Python compiles."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def main() -> None:
    """Raise AssertionError if the installed package is not the one of the checkout, whole and working."""
    assert PACKAGE.is_relative_to(Path(sys.prefix)), f"labelkin comes from {PACKAGE}, not from the wheel"
    assert importlib.metadata.version("labelkin") == labelkin.__version__
    missing = files(SOURCE) - files(PACKAGE)
    assert not missing, f"the wheel lacks {sorted(missing)}"
    for name in labelkin.__all__:
        assert getattr(labelkin, name) is not None
    tree = labelkin.Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "truck"]})
    probs = torch.tensor([[0.3, 0.3, 0.4, 0.0]])  # of cat, dog, car and truck
    assert probs.argmax(-1).item() == 2
    assert labelkin.decide.least_cost(probs, tree).item() == 0, "a cat or a dog is more probable than a machine"
    print(f"labelkin {labelkin.__version__}: {len(files(PACKAGE))} files, {len(labelkin.__all__)} names")


main()
