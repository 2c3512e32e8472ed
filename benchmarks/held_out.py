"""Write a copy of CIFAR-100 whose test set is a part of the training set, to choose hyperparameters without the test images.

    python benchmarks/held_out.py DATA DEST

DATA is a folder with `cifar-100-python`. DEST gets a folder of the same name, in which `test` holds the last tenth of each
class's training images and `train` the rest; use it as `--data-dir` or `LABELKIN_DATA`.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

from labelkin.data._readers import safe_pickle

FOLDER, SHARE = "cifar-100-python", 0.1


def main(source: Path, destination: Path) -> None:
    """Write the files; the test images of DATA are not read."""
    record = safe_pickle.load((source / FOLDER / "train").read_bytes(), source="train")
    fine = np.asarray(record[b"fine_labels"])
    held_out = np.zeros(len(fine), dtype=bool)
    for label in np.unique(fine):
        own = np.flatnonzero(fine == label)
        held_out[own[len(own) - round(SHARE * len(own)) :]] = True
    folder = destination / FOLDER
    folder.mkdir(parents=True)
    (folder / "meta").write_bytes((source / FOLDER / "meta").read_bytes())
    for name, rows in (("train", ~held_out), ("test", held_out)):
        part = {b"data": record[b"data"][rows]}
        for key in (b"fine_labels", b"coarse_labels"):
            part[key] = np.asarray(record[key])[rows].tolist()
        (folder / name).write_bytes(pickle.dumps(part, protocol=2))
        print(f"{folder / name}: {int(rows.sum()):,} images")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
