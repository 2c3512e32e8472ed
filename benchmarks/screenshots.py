"""The picture of the report in the README: `python benchmarks/screenshots.py runs`, after

labelkin compare results/plans/cifar100-decided.yaml --keep results --out runs

Needs playwright and a Chromium: one on the path, or `LABELKIN_CHROMIUM`.
"""

import argparse
import os
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from labelkin.report import read_comparisons, write_report

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LARGEST = 300_000  # bytes of a picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", help="a folder of runs")
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the picture goes")
    given = parser.parse_args()
    given.images.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        page = write_report(read_comparisons(given.runs).comparisons[0], Path(folder) / "report.html", say=print)
        photograph(page, given.images)


def photograph(report: Path, images: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("LABELKIN_CHROMIUM") or which("chromium") or which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        view.goto(report.as_uri())
        view.wait_for_selector("html[data-drawing]", state="attached")
        take(view, images / "report.png")
        browser.close()


def take(view: Any, picture: Path) -> None:
    keys = view.eval_on_selector_all(
        "figure:has(.plot)",
        "fs => fs.filter((f) => f.getBoundingClientRect().top < innerHeight).map((f) => f.dataset.figure)",
    )
    for key in keys:
        view.wait_for_selector(f"figure[data-figure={key}][data-drawn]")
    size = len(view.screenshot(path=picture))
    if size > LARGEST:
        raise SystemExit(f"{picture}: {size:,} bytes, more than {LARGEST:,}")
    print(f"{picture}: {size:,} bytes")


if __name__ == "__main__":
    main()
