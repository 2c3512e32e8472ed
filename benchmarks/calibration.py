"""What holding out training samples for a temperature costs in accuracy, and what it gains; and how many samples it needs.

    python benchmarks/calibration.py digits
    python benchmarks/calibration.py fashion-mnist --subset 0.1

Every run of a share is paired with the run of the same seed that holds out nothing. The second table fits the temperature on
random subsets of a fifth of the training samples, held out, and measures the decisions on the test set.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from labelkin.runs import DataCache, RunSpec, train_run
from labelkin.training import Settings, Trained, decide_test
from labelkin.training._final_metrics import Calibration, fitted_temperature

SHARES = (0.02, 0.05, 0.1)
OBJECTIVES = ("one-hot", "label-embedding")
HELD_OUT = 0.2  # for the second table
SIZES = (20, 50, 100, 200, 500, 1000)
DRAWS = 20


def spec(given: argparse.Namespace, objective: str, seed: int, share: float) -> RunSpec:
    training = {"epochs": given.epochs, "schedule": "cosine", "lr": given.lr, "batch_size": given.batch_size}
    options = {} if given.subset is None else {"subset": given.subset}
    settings = Settings(**training, seed=seed, calibration=share)
    return RunSpec(
        data=given.data, backbone=given.backbone, objective=objective, data_options=options, settings=settings
    )


def trained(cache: DataCache, wanted: RunSpec) -> Trained:
    return train_run(wanted, workspace=cache.workspace(wanted))


def costs_and_gains(given: argparse.Namespace, cache: DataCache, objective: str) -> list[dict[str, Any]]:
    """Return one row for each share."""
    plain = [trained(cache, spec(given, objective, seed, 0.0)).metrics for seed in range(given.seeds)]
    rows = []
    for share in SHARES:
        if cache.workspace(spec(given, objective, 0, share)).dataset.calibration is None:
            continue  # too few samples, so that nothing is held out
        runs = [trained(cache, spec(given, objective, seed, share)).metrics for seed in range(given.seeds)]
        lost = [100 * (with_["accuracy"] - without["accuracy"]) for with_, without in zip(runs, plain, strict=True)]
        gained = [with_["decided_cost"] - without["decided_cost"] for with_, without in zip(runs, plain, strict=True)]
        rows.append(
            {
                "objective": objective,
                "share": share,
                "samples": int(runs[0]["calibration_samples"]),
                "temperature": _spread([run["temperature"] for run in runs]),
                "accuracy": _spread(lost),
                "cost": _spread(gained),
                "plain_cost": mean(run["decided_cost"] for run in plain),
                "argmax_cost": mean(run["argmax_cost"] for run in plain),
                "ece": (mean(run["decided_ece"] for run in plain), mean(run["decided_ece"] for run in runs)),
            }
        )
    return rows


def by_size(given: argparse.Namespace, cache: DataCache, objective: str) -> list[dict[str, Any]]:
    """Return one row for each number of samples that the temperature is fitted on; 0 means none."""
    wanted = spec(given, objective, 0, HELD_OUT)
    workspace = cache.workspace(wanted)
    outputs, tree = train_run(wanted, workspace=workspace).outputs, workspace.context.tree()
    scores, target = outputs["calibration_scores"], outputs["calibration_target"]
    generator = torch.Generator().manual_seed(0)
    rows = []
    for size in (0, *(size for size in SIZES if size < len(target)), len(target)):
        found = []
        for _ in range(DRAWS if 0 < size < len(target) else 1):
            some = torch.randperm(len(target), generator=generator)[:size]
            fitted = Calibration(fitted_temperature(scores[some], target[some]), size) if size else Calibration(1.0, 0)
            found.append(decide_test(outputs["scores"], outputs["target"], tree, fitted).metrics)
        columns = ("temperature", "decided_ece", "decided_cost")
        rows.append({"objective": objective, "samples": size, **{c: _spread([f[c] for f in found]) for c in columns}})
    return rows


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def _text(found: tuple[float, float], form: str, around: str | None = None) -> str:
    return f"{format(found[0], form)} ± {format(found[1], around or form)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--backbone")
    parser.add_argument("--subset", type=float, help="share of the training samples to use")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    cache = DataCache()
    rows = [row for objective in OBJECTIVES for row in costs_and_gains(given, cache, objective)]
    print("| objective | share | samples | temperature | accuracy, points | cost | cost without | ECE without, with |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        cells = [row["objective"], f"{row['share']:g}", str(row["samples"]), _text(row["temperature"], ".3f")]
        cells += [_text(row["accuracy"], "+.2f", ".2f"), _text(row["cost"], "+.4f", ".4f"), f"{row['plain_cost']:.4f}"]
        print(f"| {' | '.join(cells)} | {row['ece'][0]:.3f}, {row['ece'][1]:.3f} |")
    sizes = [row for objective in OBJECTIVES for row in by_size(given, cache, objective)]
    print("\n| objective | fitted on | temperature | ECE | cost |\n| --- | --- | --- | --- | --- |")
    for row in sizes:
        cells = [_text(row[name], ".4f") for name in ("temperature", "decided_ece", "decided_cost")]
        print(f"| {row['objective']} | {row['samples'] or 'none'} | {' | '.join(cells)} |")
    if given.json is not None:
        given.json.write_text(json.dumps({"shares": rows, "sizes": sizes}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
