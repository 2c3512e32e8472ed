"""One thread a process: the tests are many and small, and threads that wait for each other cost more than they bring."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Child processes of the tests import `support` as well.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))

import torch

torch.set_num_threads(1)
