"""Data-parallel training on real gloo processes takes the same steps as one process with all the samples."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from support import data_parallel
from support.cases import CASES
from support.data_parallel import COMPILED, EPOCHS, TARGET, UNWEIGHTED, dealt
from support.requires import skip_unless

BY_NAME = {str(case): case for case in CASES}
NAMES = [*BY_NAME, *(f"{name}-compiled" for name in COMPILED), *(f"{name}-unweighted" for name in UNWEIGHTED)]
every_name = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", params=[2, 3], ids=["2 processes", "3 processes"])
def ranks(request: pytest.FixtureRequest) -> int:
    skip_unless(dist.is_available() and dist.is_gloo_available(), "torch.distributed with gloo", "ddp")
    return request.param


@pytest.fixture(scope="module")
def trained(ranks: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where every process has left what it found."""
    folder = tmp_path_factory.mktemp(f"ranks{ranks}")
    script = data_parallel.__file__
    processes = [
        subprocess.Popen(
            [sys.executable, script, str(rank), str(ranks), str(folder)], stderr=subprocess.PIPE, text=True
        )
        for rank in range(ranks)
    ]
    for process in processes:
        _, complaints = process.communicate(timeout=1200)
        assert process.returncode == 0, complaints
    return folder


@cache
def alone(name: str) -> dict[str, Any]:
    case = BY_NAME[name.removesuffix("-compiled").removesuffix("-unweighted")]
    return data_parallel.train(case, class_weight=not name.endswith("-unweighted"))


@pytest.mark.slow
@every_name
def test_processes_together_train_as_one(name: str, ranks: int, trained: Path):
    found = [torch.load(trained / f"{name}.{rank}", weights_only=False) for rank in range(ranks)]
    for rank, result in enumerate(found):
        assert not isinstance(result, str), f"process {rank}: {result}"
    expected = alone(name)
    losses = torch.stack([torch.stack(result["losses"]) for result in found]).mean(0)
    torch.testing.assert_close(losses, torch.stack(expected["losses"]), rtol=1e-9, atol=1e-9)
    for result in found:
        for step, (ours, wanted) in enumerate(zip(result["gradients"], expected["gradients"], strict=True)):
            torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-9, msg=lambda m, s=step: f"step {s}: {m}")
        torch.testing.assert_close(result["state"], expected["state"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("epoch", range(EPOCHS))
def test_the_samples_are_dealt_as_the_test_needs_them(ranks: int, epoch: int):
    shards = [dealt(epoch, rank, ranks) for rank in range(ranks)]
    assert torch.equal(torch.cat(shards).sort().values, torch.arange(len(TARGET)))
    assert len({len(rows) for rows in shards}) == ranks
    assert sum(bool((TARGET[rows] == 3).any()) for rows in shards) == 1
    assert int((TARGET == 5).sum()) == 1
    moved = [set(dealt(0, rank, ranks).tolist()) != set(rows.tolist()) for rank, rows in enumerate(shards)]
    assert all(moved) == (epoch > 0)
