"""One thread a process: the tests are many and small, and threads that wait for each other cost more than they bring."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

torch.set_num_threads(1)
