"""Runs on digits and the pages made of them: fixtures that the tests of the report share."""

import csv
from pathlib import Path

import pytest

import labelkin
from labelkin.comparison import Comparison
from labelkin.report import write_report
from support.commands import FOUND

OBJECTIVES = ["one-hot", "label-embedding", "static-labels"]  # static labels define no probabilities
SEEDS = (0, 1)


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Three objectives on digits, two seeds each."""
    out = tmp_path_factory.mktemp("report-runs")
    return labelkin.compare("digits", objectives=OBJECTIVES, seeds=SEEDS, out=out, epochs=3, batch_size=64, lr=5e-3)


@pytest.fixture(scope="session")
def digits_page(digits: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(digits, tmp_path_factory.mktemp("report") / "digits.html")


def hostile_table(path: Path) -> list[str]:
    """Digits as a table whose classes have names that a careless page would run, lose or break on."""
    names = [
        "<script>window.broken = 1</script>",
        "</script><img src=x onerror='window.broken = 2'>",
        "\"quotes\" & 'more'",
        "🦊 fox",
        "שלום",
        "L" + "o" * 197 + "ng",
        "L" + "o" * 197 + "nk",
        "a,b;c",
        "%{x} <b>bold</b>",
        "{{ 7 * 7 }}",
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["label", *(f"p{i}" for i in range(64))])
        writer.writerows([names[y], *x] for x, y in zip(FOUND.data[:300], FOUND.target[:300], strict=True))
    return names


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A page on classes with such names, and the names."""
    folder = tmp_path_factory.mktemp("hostile")
    names = hostile_table(folder / "names.csv")
    found = labelkin.compare(folder / "names.csv", objectives=["one-hot"], out=folder / "runs", epochs=1)
    return write_report(found, folder / "report.html"), names
