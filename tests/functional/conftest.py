"""Where fused losses run: torch operations on the CPU, and Triton on a GPU or, without one, in its interpreter."""

import os
from importlib.util import find_spec

import pytest
import torch

from labelkin.functional._kernels import fused
from labelkin.functional._kernels import losses as fused_losses
from support.requires import skip_unless


@pytest.fixture
def for_every_size(monkeypatch):
    """Small inputs take the fused losses too."""
    monkeypatch.setattr(fused_losses, "SMALL", 0)
    monkeypatch.setattr(fused_losses, "LITTLE", 0)


@pytest.fixture(params=["cpu", "triton"])
def device(request, monkeypatch, for_every_size):
    """The device of the inputs. `TRITON_INTERPRET=1` must be set before Triton is imported."""
    if request.param == "cpu":
        return "cpu"
    skip_unless(find_spec("triton") is not None, "Triton", "triton")
    if torch.cuda.is_available():
        return "cuda"
    skip_unless(os.environ.get("TRITON_INTERPRET") == "1", "a GPU, or TRITON_INTERPRET=1,", "triton")
    for module in (fused, fused_losses):
        monkeypatch.setattr(module, "uses_triton", lambda logits: True)
    return "cpu"
