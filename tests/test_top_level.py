"""The functions at the top of the package: every name keeps its meaning whatever was imported before."""

import inspect
import itertools
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import labelkin
from labelkin import runs

FUNCTIONS = ("audit_predictions", "compare", "evaluate", "load_run", "train")
ROOMS = sorted(module.name for module in pkgutil.iter_modules(labelkin.__path__) if module.ispkg)


def test_no_room_shares_a_name_with_a_function():
    assert {"audit", "cli", "runs", "training"} <= set(ROOMS)
    assert not set(ROOMS) & set(FUNCTIONS)
    own = {name for name in labelkin.__all__ if inspect.isfunction(getattr(labelkin, name))}
    assert own == set(FUNCTIONS)


@pytest.mark.long
@pytest.mark.parametrize("first", ["rooms", "functions"])
def test_functions_stay_functions_whatever_is_imported_first(first: str):
    """In a fresh process: all rooms, then all functions in every order; or the other way round."""
    rooms = "\n".join(f"importlib.import_module('labelkin.{room}')" for room in ROOMS)
    orders = (
        f"for order in itertools.permutations({FUNCTIONS}):\n"
        "    for name in order:\n"
        "        assert inspect.isfunction(getattr(labelkin, name)), name\n"
    )
    parts = (rooms, orders) if first == "rooms" else (orders, rooms, orders)
    modules = f"for room in {ROOMS}:\n    assert inspect.ismodule(getattr(labelkin, room)), room\n"
    code = "import importlib, inspect, itertools, labelkin\n" + "\n".join(parts) + "\n" + modules
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_each_function_can_be_called_in_any_order(tmp_path: Path):
    run = labelkin.train("digits", "label-smoothing", out=tmp_path / "run", epochs=1, options={"smoothing": 0.2})
    arrays = {"probs": np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), "target": np.array([0, 1, 1])}
    calls = {
        "audit_predictions": lambda: labelkin.audit_predictions(arrays).samples == 3,
        "compare": lambda: (
            labelkin.compare("digits", objectives=["one-hot"], out=tmp_path / "runs", epochs=1).rows[0].runs == 1
        ),
        "evaluate": lambda: labelkin.evaluate(run).metrics["accuracy"] == pytest.approx(run.metrics["accuracy"]),
        "load_run": lambda: len(labelkin.load_run(run).classes) == 10,
        "train": lambda: (
            labelkin.train("digits", "label-smoothing", out=tmp_path / "run", epochs=1, options={"smoothing": 0.2})
            == run
        ),
    }
    assert set(calls) == set(FUNCTIONS)
    for name, following in itertools.permutations(FUNCTIONS, 2):
        assert calls[name](), name
        assert calls[following](), following


@pytest.mark.long
def test_train_keeps_finished_runs_and_refuses_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = labelkin.train("digits", epochs=1, seed=3)
    assert run.path.parent == Path("runs")
    assert run.path.name.startswith("one-hot-seed3-")
    assert (run.epoch, len(run.history)) == (1, 1)
    before = (run.path / "final.json").stat().st_mtime_ns
    assert labelkin.train("digits", epochs=1, seed=3) == run
    assert (run.path / "final.json").stat().st_mtime_ns == before
    with pytest.raises(labelkin.InputError, match="holds a run with epochs 1, not 2"):
        labelkin.train("digits", epochs=2, seed=3, out=run.path)
    (run.path / "final.json").unlink()
    assert labelkin.train("digits", epochs=1, seed=3).metrics == pytest.approx(run.metrics, nan_ok=True)


def test_old_names_still_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"labelkin\.load is deprecated; use labelkin\.load_run"):
        assert labelkin.load is labelkin.load_run
    with pytest.warns(DeprecationWarning, match=r"labelkin\.runs\.load is deprecated"):
        assert runs.load is labelkin.load_run
    assert "load" not in labelkin.__all__


@pytest.mark.parametrize("name", ["compare", "evaluate", "load_run", "train"])
def test_each_function_documents_its_arguments(name: str):
    function = getattr(labelkin, name)
    text = inspect.getdoc(function) or ""
    for part in ("Args:", "Returns:", "Example:", ">>> "):
        assert part in text, part
    for argument in inspect.signature(function).parameters:
        assert f"{argument}:" in text, argument
