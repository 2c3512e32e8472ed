"""One thread a process: the tests are many and small, and threads that wait for each other cost more than they bring."""

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Child processes of the tests import `support` as well.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
# What labelkin computes from the data of the tests is not kept.
if "LABELKIN_CACHE" not in os.environ:
    os.environ["LABELKIN_CACHE"] = tempfile.mkdtemp(prefix="labelkin-tests-")
    atexit.register(shutil.rmtree, os.environ["LABELKIN_CACHE"], ignore_errors=True)

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from looking through all modules and tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Set it where tests run: the process that hands out tests to others does not need torch."""
    import torch

    torch.set_num_threads(1)
