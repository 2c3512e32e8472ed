"""scikit-learn's handwritten digits: 1,797 images of 8 x 8, inside the package, nothing to fetch."""

import torch

from labelkin._extras import require
from labelkin.data.dataset import ArraySplit
from labelkin.data.read import Read
from labelkin.data.splits import stratified

DIGITS = tuple("0123456789")
SHADE = 15  # 0..16 becomes 0..240: every value stays exact, and the pictures look right
TEST_FRACTION, SPLIT_SEED = 0.2, 0  # one test set for everybody: the set itself comes without one


def read_digits() -> Read:
    found = require("sklearn.datasets", extra="sklearn", use="the digits data set").load_digits()
    inputs = (torch.from_numpy(found.images)[:, None] * SHADE).to(torch.uint8)
    split = ArraySplit(inputs, torch.from_numpy(found.target).long())
    rest, part = stratified(split.targets, TEST_FRACTION, seed=SPLIT_SEED, classes=DIGITS)
    return Read(DIGITS, train=split.take(rest), test=split.take(part))
