"""Costs of an assistant's mistakes on CLINC150: least-cost decisions against the most probable intent.

    python benchmarks/assistant_costs.py write data/costs/clinc150.csv
    labelkin compare results/plans/clinc150-costs.yaml --out data/runs/clinc150-costs
    python benchmarks/assistant_costs.py compare data/runs/clinc150-costs

CLINC150 has 150 intents of a voice assistant. A mistake costs what the assistant then does or fails to do, so the costs are not
symmetric: to pay a bill when asked for its amount costs 10, to tell the amount when asked to pay costs 1. The numbers are an
assumption, not a measurement. `compare` prints Markdown: for every objective of the runs, what its two answers cost on the test
sentences, and the difference with its 95 % interval over seeds and test sentences.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from labelkin.comparison import crossed
from labelkin.data import load
from labelkin.runs import Record, Store

ASKED_AGAIN = 1.0  # a wrong answer: the user repeats the question
# To do these without having been asked spends money, blocks something or erases something.
IRREVERSIBLE = """
book_flight book_hotel cancel_reservation car_rental credit_limit_change direct_deposit freeze_account insurance_change new_card
order order_checks pay_bill pin_change pto_request redeem_rewards reset_settings restaurant_reservation rollover_401k transfer
uber
"""
# To do these without having been asked reaches other people.
REACHES_OTHERS = "make_call schedule_meeting share_location text travel_notification"
# Not to notice these loses time that counts.
URGENT = "account_blocked jump_start lost_luggage report_fraud report_lost_card"
COST_OF_IRREVERSIBLE, COST_OF_REACHING, COST_OF_MISSING = 10.0, 5.0, 5.0


def costs_of(classes: tuple[str, ...]) -> np.ndarray:
    """Return the costs (K, K) of the true intent (rows) and the answer (columns)."""
    costs = np.full((len(classes), len(classes)), ASKED_AGAIN)
    place = {name: k for k, name in enumerate(classes)}
    for names, cost in ((REACHES_OTHERS, COST_OF_REACHING), (IRREVERSIBLE, COST_OF_IRREVERSIBLE)):
        costs[:, [place[name] for name in names.split()]] = cost
    missed = [place[name] for name in URGENT.split()]
    costs[missed] = np.maximum(costs[missed], COST_OF_MISSING)
    np.fill_diagonal(costs, 0)
    return costs


def write(path: Path) -> None:
    """Write the costs by the names of the intents."""
    classes = load("clinc150", encoder="hashed-tfidf").classes
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["", *classes])
        table.writerows([name, *map(float, row)] for name, row in zip(classes, costs_of(classes), strict=True))
    print(f"{len(classes)} x {len(classes)} costs in {path}")


def by_label(store: Path) -> dict[str, list[Record]]:
    """Return the finished runs of each objective, in the order of their seeds."""
    found: dict[str, list[Record]] = {}
    for record in sorted(Store(store).records(), key=lambda record: record.seed):
        if record.finished:
            found.setdefault(record.label, []).append(record)
    return found


def compare(store: Path) -> None:
    """Print what the most probable intent and the intent of least expected cost cost, for the same models."""
    print(
        "| objective | n | argmax: accuracy % | cost | least cost: accuracy % | cost | difference in cost | changed % |\n|"
        + " --- |" * 8
    )
    for label, records in by_label(store).items():
        made = [record.decisions() for record in records]
        argmax, least = (np.stack([getattr(one, name) for one in made]) for name in ("argmax_cost", "cost"))
        found = crossed((least - argmax).astype(np.float64))
        right = [100 * np.mean([getattr(one, n) == one.target for one in made]) for n in ("argmax", "answer")]
        changed = 100 * np.mean([one.answer != one.argmax for one in made])
        share = 100 / float(argmax.mean())
        print(
            f"| {label} | {len(made)} | {right[0]:.2f} | {argmax.mean():.4f} | {right[1]:.2f} | {least.mean():.4f} | "
            f"{found.mean * share:+.1f} % [{found.low * share:+.1f}, {found.high * share:+.1f}] | {changed:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("path", type=Path, help="the file of costs to write, or the folder of the runs")
    asked = parser.parse_args()
    {"write": write, "compare": compare}[asked.command](asked.path)


if __name__ == "__main__":
    main()
