"""Records of runs with given costs on each test sample, as a results file holds them."""

from pathlib import Path
from typing import Any

import numpy as np

from labelkin.runs import Outcomes, Record
from labelkin.runs._decisions import packed_outcomes
from labelkin.runs._results_file import StoredRecord

SETTINGS = {"epochs": 2, "batch_size": 64}


def run_with_costs(
    label: str,
    seed: int,
    costs: Any,
    *,
    calibrated: int = 500,
    tree: str = "own",
    tested: str = "same",
    stored: bool = True,
    data_options: dict[str, Any] | None = None,
    final: dict[str, float] | None = None,
) -> Record:
    """Return a finished run whose decisions cost this much; a decision is right where it costs nothing."""
    cost = np.asarray(costs, dtype=np.float64)
    wrong = cost[cost > 0]
    severity = float(wrong.mean()) if len(wrong) else float("nan")
    accuracy = float((cost == 0).mean())
    outcomes = Outcomes(cost, cost == 0, tested, calibrated)
    config = {
        "objective": label,
        "options": {},
        "data": "animals",
        "data_options": data_options or {},
        "resolved_backbone": "mlp",
        "taxonomy": None,
        "tree": tree,
        "settings": {**SETTINGS, "seed": seed},
        "curve": [accuracy / 2, accuracy],
        "outcomes": packed_outcomes(outcomes) if stored else None,
    }
    measured = {"accuracy": accuracy, "severity": severity, "decided_cost": float(cost.mean())}
    measured |= {"decided_accuracy": accuracy, "decided_severity": severity}
    measured |= {"decided_ahd5": 1.0, "ahd5_floor": 0.8, "decided_ece": 0.02}
    return StoredRecord(f"{label}-{seed}", Path("runs", label), label, config, {**measured, **(final or {})}, 1.0)


def earlier_run(label: str, seed: int, *, accuracy: float, severity: float, **given: Any) -> Record:
    """Return a run from before decisions were stored."""
    run = run_with_costs(label, seed, [0.0], stored=False, **given)
    final = {"accuracy": accuracy, "severity": severity, "crm_accuracy": accuracy, "crm_severity": severity}
    return run._replace(final=final)
