"""The two pictures of the report in the README: `python benchmarks/screenshots.py runs`, after

labelkin compare digits --objectives one-hot,label-smoothing,semantic-smoothing,hierarchical,conditional-softmax,\
label-embedding,adaptive-labels --seeds 0,1,2,3,4 --epochs 15 --batch-size 64 --lr 5e-3 --schedule cosine \
--augment shift:0.125 --out runs

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
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go")
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
        for name, scheme, section in (("report", "light", "#main"), ("report-look", "dark", "#look")):
            view = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
            view.goto(report.as_uri())
            view.wait_for_selector("html[data-drawing]", state="attached")
            take(view, section, images / f"{name}.png")
        browser.close()


def take(view: Any, section: str, picture: Path) -> None:
    top = "0" if section == "#main" else f"document.querySelector('{section}').offsetTop"
    view.evaluate(f"window.scrollTo({{top: {top}, behavior: 'instant'}})")
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
