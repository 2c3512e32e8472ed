"""A short run of `make chaos`: commands that are stopped at random leave the same bytes when they run again."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")]


def test_three_stops():
    command = [sys.executable, str(Path(__file__).with_name("chaos.py")), "--kills", "3", "--only", "train,predict"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "3 stops, 0 wrong" in told.stdout
