"""The Triton kernels compile for GPUs that this machine need not have."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.requires import skip_unless

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.long
@pytest.mark.parametrize("capability", [80, 90])
def test_every_triton_kernel_compiles(capability: int, tmp_path: Path):
    skip_unless(find_spec("triton") is not None, "Triton", "triton")
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    env |= {
        "TRITON_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(TESTS), env.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    command = [sys.executable, str(TESTS / "support/compile_kernels.py"), str(capability)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert not found["missing"]
    assert len(found["kernels"]) >= 11
    assert all(kernel["bytes"] > 1000 for kernel in found["kernels"].values())
    assert all(kernel["stack"] <= 128 for kernel in found["kernels"].values()), found["kernels"]
