"""Each fuzzer finds a bug that is planted behind the first checks of its target, within the cases of a short run."""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_fuzz_files
import test_fuzz_inputs
import test_fuzz_runs
import test_fuzz_weights

import support.fuzzing

pytestmark = pytest.mark.slow
CASES = 300
made_runs, made_weights, trained = test_fuzz_runs.made, test_fuzz_weights.made, test_fuzz_inputs.runs


class Planted(Exception):
    """The bug."""


def plant(monkeypatch: pytest.MonkeyPatch, place: str, when: Callable[..., bool]) -> None:
    """Make a function raise `Planted` if `when`, called with its result and its arguments, is true."""
    module, _, name = place.rpartition(".")
    owner: Any = import_module(module)
    function = getattr(owner, name)

    @wraps(function)
    def wrong(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        if when(result, *arguments):
            raise Planted
        return result

    monkeypatch.setattr(owner, name, wrong)


def finds(test: Callable[..., None], *arguments: Any) -> None:
    with pytest.raises(Planted):
        test(*arguments)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support.fuzzing, "CASES", CASES)


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".csv", ".nwk"])
def test_taxonomies(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    odd = lambda tree, *_: any(not set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789 -_/.") for name in tree.names)  # noqa: E731
    plant(monkeypatch, "labelkin.structure._files.load", odd)
    finds(test_fuzz_files.test_taxonomies, tmp_path, suffix)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_tables(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.data._readers.columns.row_numbers", lambda row, *_: bool((np.abs(row) > 1.5).any()))
    finds(test_fuzz_files.test_tables_as_data, tmp_path, suffix)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz"])
def test_files_of_predictions(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    few = lambda found, *_: len(found.target) < 9  # noqa: E731
    plant(monkeypatch, "labelkin.audit._audit.check_predictions", few)
    finds(test_fuzz_files.test_files_of_predictions, tmp_path, suffix, monkeypatch)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_numpy_files(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    empty = lambda found, *_: any(a.size == 0 for a in (found.values() if isinstance(found, dict) else [found]))  # noqa: E731
    plant(monkeypatch, "test_fuzz_files.load_numpy", empty)
    finds(test_fuzz_files.test_numpy_files, tmp_path, suffix)


def test_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "test_fuzz_runs.read_plan", lambda plan, *_: len(plan.seeds) != 2)
    finds(test_fuzz_runs.test_plans, tmp_path, monkeypatch)


def test_run_folders(made_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(
        monkeypatch,
        "labelkin.runs._store.read_record",
        lambda record, *_: record is not None and record.settings["epochs"] != 1,
    )
    finds(test_fuzz_runs.test_run_folders, made_runs, tmp_path)


def test_packed_runs(made_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.runs._store.read_record", lambda record, *_: record is not None and unusual(record))
    finds(test_fuzz_runs.test_packed_runs, made_runs, tmp_path)


def unusual(record: Any) -> bool:
    """Whether a setting is another than that of the runs."""
    known = {"epochs": 1, "batch_size": 512, "seed": 0, "optimizer": "adam", "schedule": "constant", "workers": 0}
    return any(record.settings.get(name) != value for name, value in known.items())


def test_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.data._readers.images._eight_bits", lambda found, image: image.mode == "CMYK")
    finds(test_fuzz_inputs.test_images, tmp_path)


def test_parquet_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.data._readers.columns.row_numbers", lambda row, *_: bool((np.abs(row) > 1e6).any()))
    finds(test_fuzz_inputs.test_parquet_tables, tmp_path)


@pytest.mark.parametrize("kind", ["images", "table"])
def test_inputs(trained: dict[str, Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.runs._predictor._as_tensor", lambda values, *_: len(values) == 7 or len(values) == 4)
    finds(test_fuzz_inputs.test_inputs_of_predictions, trained, tmp_path, kind, monkeypatch)


def test_exported(trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    half = lambda values, given: getattr(given, "dtype", None) == np.float16 and len(given) == 3  # noqa: E731
    plant(monkeypatch, "labelkin.runs._predictor._as_tensor", half)
    finds(test_fuzz_inputs.test_inputs_of_exported_models, trained, tmp_path)


def test_weights(made_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    moved = lambda context, *_: list(context.classes) != sorted(context.classes)  # noqa: E731
    plant(monkeypatch, "labelkin.runs._predictor.restored_context", moved)
    finds(test_fuzz_weights.test_weights, made_weights, tmp_path)


def test_outputs(made_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = lambda found, *_: found.arrays["logits"].max() > 1e4 or not np.isfinite(found.arrays["logits"]).all()  # noqa: E731
    plant(monkeypatch, "labelkin.audit._audit.read_run", other)
    finds(test_fuzz_weights.test_outputs, made_weights, tmp_path)


def test_a_case_that_hangs():
    def forever() -> None:
        while True:
            pass

    with pytest.raises(support.fuzzing.Hang), support.fuzzing.limited(1):
        forever()


def wild(history: list[dict[str, float]]) -> bool:
    return any(value < 0 or value > 1e6 for row in history for value in row.values())


def test_training_states(made_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch, "labelkin.training._loop.check_progress", lambda _, progress: wild(progress["history"]))
    finds(test_fuzz_weights.test_training_states, made_weights, tmp_path)
