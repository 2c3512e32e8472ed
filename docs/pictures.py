"""The pictures of the documentation, in docs/images: `make pictures`, or `python docs/pictures.py [RUNS]`.

- mistake.svg: a sneaker that logistic regression takes for a bag, and that least-cost decisions take for another shoe.
- audit.png: the first screen of the audit of this model, with costs that are made up for the picture.
- report.png: the first screen of the report of `labelkin demo` in RUNS; only if RUNS is given.

Screens need playwright and a Chromium: one on the path, or `LABELKIN_CHROMIUM`.
"""

import argparse
import base64
import io
import os
from html import escape
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from labelkin import Taxonomy, audit_predictions, decide
from labelkin.audit import Audit
from labelkin.report import write_audit_page

IMAGES = Path(__file__).resolve().parent / "images"
LARGEST = 300_000  # bytes of a picture
SAMPLES = 2000  # images that train the model, and as many others that fit its temperature
PICTURED = 1108  # the test image of mistake.svg: `milder_mistakes` lists all like it
LEAST = 0.05  # probability of a class that is shown

INK, GRAY, LINE, RED, GREEN, LIGHT = "#1b2430", "#5b6675", "#d9dfe6", "#b3261e", "#00695c", "#f6f7f9"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Mistake(NamedTuple):
    """A sample whose most probable class is a worse mistake than the class of least expected cost."""

    image: np.ndarray  # (height, width) of uint8
    probs: Tensor  # (K,)
    true: int
    probable: int
    decided: int
    tree: Taxonomy


def milder_mistakes(probs: Tensor, target: Tensor, tree: Taxonomy) -> Tensor:
    """Return where the class of least expected cost is wrong, but closer to the truth than the most probable class."""
    distance = torch.from_numpy(tree.distance())
    before, after = distance[target, probs.argmax(-1)], distance[target, decide.least_cost(probs, tree)]
    return torch.nonzero((after > 0) & (after < before)).flatten()


class Clothes(NamedTuple):
    """What logistic regression says about the test images of Fashion-MNIST."""

    images: Tensor  # (n, 1, 28, 28) of uint8
    target: Tensor
    log_probs: Tensor  # (n, K), as the model gives them
    probs: Tensor  # (n, K), calibrated on other images
    tree: Taxonomy


def classify_clothes() -> Clothes:
    """Train logistic regression on images of Fashion-MNIST, and classify the test images."""
    from sklearn.linear_model import LogisticRegression

    from labelkin import data

    clothes = data.load("fashion-mnist")
    assert isinstance(clothes.train, data.ArraySplit)
    assert isinstance(clothes.test, data.ArraySplit)
    assert clothes.taxonomy is not None

    def features(images: Tensor) -> np.ndarray:
        return torch.nn.functional.avg_pool2d(images.float() / 255, 2).flatten(1).numpy()

    def log_probs(images: Tensor) -> Tensor:
        return torch.from_numpy(model.predict_log_proba(features(images)))

    inputs, targets = clothes.train.inputs[: 2 * SAMPLES], clothes.train.targets[: 2 * SAMPLES]
    model = LogisticRegression(max_iter=300).fit(features(inputs[:SAMPLES]), targets[:SAMPLES])
    temperature = decide.Temperature().fit(log_probs(inputs[SAMPLES:]), targets[SAMPLES:])
    found = log_probs(clothes.test.inputs)
    probs = temperature.apply(found).softmax(-1)
    return Clothes(clothes.test.inputs, clothes.test.targets, found, probs, clothes.taxonomy)


def pictured_mistake(clothes: Clothes) -> Mistake:
    """Return the mistake of mistake.svg."""
    found = milder_mistakes(clothes.probs, clothes.target, clothes.tree).tolist()
    if PICTURED not in found:
        raise SystemExit(f"PICTURED: expected one of the milder mistakes, got {PICTURED}; choose one of {found}")
    probs = clothes.probs[PICTURED]
    decided = decide.least_cost(clothes.probs, clothes.tree)[PICTURED]
    image = clothes.images[PICTURED, 0].numpy()
    return Mistake(image, probs, int(clothes.target[PICTURED]), int(probs.argmax()), int(decided), clothes.tree)


def audit_clothes(clothes: Clothes) -> Audit:
    """Return the audit of all test images, if what is wrongly taken for a top costs 10, and any other mistake 1."""
    tree = clothes.tree
    is_top = np.array([tree.names[tree.parents[leaf]] == "tops" for leaf in tree.leaves])
    costs = np.where(~is_top[:, None] & is_top, 10.0, 1.0)  # rows are true classes, columns are answers
    np.fill_diagonal(costs, 0)
    given = {"target": clothes.target.numpy(), "logits": clothes.log_probs.numpy()}
    return audit_predictions(given, classes=list(tree.classes), taxonomy=tree, costs=costs)


def draw(mistake: Mistake) -> str:
    """Return a mistake as an SVG picture: the image, the probabilities by group, and both decisions with their costs."""
    tree, probs = mistake.tree, mistake.probs.tolist()
    distance = tree.distance()
    groups: dict[str, list[int]] = {}
    for k, leaf in enumerate(tree.leaves):
        groups.setdefault(tree.names[tree.parents[leaf]], []).append(k)
    ranked = sorted(groups.items(), key=lambda group: -sum(probs[k] for k in group[1]))
    rows: list[str] = []
    top = 66.0
    for name, classes in ranked:
        total = sum(probs[k] for k in classes)
        if total < LEAST:
            continue
        rows.append(
            _text(232, top, name, size=13, color=GRAY) + _text(560, top, _percent(total), size=13, color=GRAY, end=True)
        )
        for k in sorted((k for k in classes if probs[k] >= LEAST), key=lambda k: -probs[k]):
            top += 25
            color = {mistake.probable: RED, mistake.decided: GREEN}.get(k, "#9aa5b1")
            rows.append(_text(244, top, tree.classes[k], size=15))
            rows.append(
                f'<rect x="350" y="{top - 12:g}" width="{140 * probs[k] / max(probs):.0f}" height="14" rx="3" fill="{color}"/>'
            )
            rows.append(_text(560, top, _percent(probs[k]), size=15, end=True))
        top += 34
    height = max(268, round(top))
    decisions = []
    for y, title, k, color in (
        (66, "Most probable class", mistake.probable, RED),
        (166, "Least expected cost", mistake.decided, GREEN),
    ):
        cost = distance[mistake.true, k]
        decisions.append(
            f'<rect x="600" y="{y - 18}" width="252" height="82" rx="8" fill="{LIGHT}"/>'
            f'<rect x="600" y="{y - 18}" width="5" height="82" rx="2" fill="{color}"/>'
            + _text(622, y + 6, title, size=13, color=GRAY)
            + _text(622, y + 32, tree.classes[k], size=20, color=color, bold=True)
            + _text(622, y + 54, f"a mistake that costs {cost:g}", size=14)
        )
    file = io.BytesIO()
    Image.fromarray(255 - mistake.image).save(file, "PNG")
    photo = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    heads = (("The image", 36), ("What the model says", 232), ("What is decided", 600))
    true = tree.classes[mistake.true]
    probable, decided = tree.classes[mistake.probable], tree.classes[mistake.decided]
    says = f"{true}: the most probable class is {probable}, and the class of least expected cost is {decided}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height}" font-family="{FONT}" role="img">\n'
        f"<title>{escape(says)}</title>\n"
        f'<rect x=".5" y=".5" width="879" height="{height - 1}" rx="12" fill="white" stroke="{LINE}"/>\n'
        + "".join(_text(x, 34, head, size=14, bold=True) for head, x in heads)
        + f'\n<image x="36" y="54" width="160" height="160" style="image-rendering:pixelated" href="{photo}"/>\n'
        + _text(116, 240, f"true class: {true}", size=15, middle=True)
        + "\n"
        + "\n".join([*rows, *decisions])
        + "\n</svg>\n"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    color: str = INK,
    bold: bool = False,
    end: bool = False,
    middle: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}"{weight}{anchor}>{escape(words)}</text>'


def photograph(page: Path, picture: Path, *, height: int = 900) -> None:
    """Write the first screen of a page of labelkin as a picture."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("LABELKIN_CHROMIUM") or which("chromium") or which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
        view.goto(page.as_uri())
        view.wait_for_selector("html[data-drawing]", state="attached")
        keep(_screen(view), picture)
        browser.close()


def _screen(view: Any) -> bytes:
    keys = view.eval_on_selector_all(
        "figure:has(.plot)",
        "fs => fs.filter((f) => f.getBoundingClientRect().top < innerHeight).map((f) => f.dataset.figure)",
    )
    for key in keys:
        view.wait_for_selector(f"figure[data-figure={key}][data-drawn]")
    screen: bytes = view.screenshot()
    return screen


def keep(content: bytes, picture: Path) -> None:
    """Write a picture, unless it is too large for the repository."""
    if len(content) > LARGEST:
        raise SystemExit(f"{picture}: expected at most {LARGEST:,} bytes, got {len(content):,}; show less")
    picture.write_bytes(content)
    print(f"{picture}: {len(content):,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", type=Path, help="the folder of the runs of `labelkin demo`")
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go")
    given = parser.parse_args()
    given.images.mkdir(parents=True, exist_ok=True)
    clothes = classify_clothes()
    keep(draw(pictured_mistake(clothes)).encode(), given.images / "mistake.svg")
    with TemporaryDirectory() as folder:
        photograph(write_audit_page(audit_clothes(clothes), Path(folder) / "audit.html"), given.images / "audit.png")
    if given.runs is not None:
        photograph((given.runs / "report.html").resolve(), given.images / "report.png")


if __name__ == "__main__":
    main()
