"""The page of a served run in a real Chromium: photos, rows and texts, errors, the keyboard, and narrow screens."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import labelkin
from labelkin import Taxonomy
from labelkin.data._readers.images import ImageForm, read_image
from labelkin.runs import load_run
from support.browsing import Opened, browser, new_page
from support.commands import FOUND, PIXELS, start
from support.later import later_or_skip

later_or_skip("fastapi")
pytestmark = pytest.mark.slow

TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    folder = tmp_path_factory.mktemp("page")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    labelkin.train("digits", "one-hot", out=folder / "photos", taxonomy=folder / "tree.json", epochs=2, calibration=0.1)
    names = {k: EVIL if k == 0 else f"class {k}" for k in range(10)}
    rows = [",".join([*(f"p{at}" for at in range(64)), "label"])]
    rows += [",".join([*map(str, x), names[y]]) for x, y in zip(FOUND.data[:500], FOUND.target[:500], strict=True)]
    (folder / "table.csv").write_text("\n".join(rows))
    labelkin.train(folder / "table.csv", "one-hot", out=folder / "table", epochs=3)
    Image.fromarray(PIXELS[3]).resize((300, 200)).save(folder / "three.png")
    (folder / "broken.png").write_bytes(b"no image")
    return folder


@contextmanager
def served(run: Path, *options: str) -> Iterator[str]:
    process = start("serve", run, "--port", "0", *options)
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None, process.stderr.read()
    try:
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)


@pytest.fixture(scope="module")
def photos(home: Path) -> Iterator[str]:
    """The address of the served run on photos."""
    with served(home / "photos", "--threshold", "0.5") as address:
        yield address


class Tab(Opened):
    """The page of a server."""

    ready = "form:not([hidden])"

    def text(self, id_: str) -> str:
        return str(self.page.locator(f"#{id_}").inner_text())


def test_a_photo_is_answered_with_its_path(started: Any, home: Path, photos: str):
    tab = Tab(started, photos)
    tab.page.set_input_files("#file", home / "three.png")
    tab.page.wait_for_selector("#result:not([hidden])")
    pixels = read_image(home / "three.png", ImageForm(1, 8, 8)).unsqueeze(0)
    expected = load_run(home / "photos").predict(pixels, threshold=0.5)
    assert tab.text("answer") == expected.classes[0]
    assert expected.classes[0] in tab.text("path")
    assert tab.page.locator("#rules tr").count() == 3
    assert tab.page.locator("#tree li").count() > 3
    assert tab.page.locator("#tree .chosen").count() == len(tab.text("path").split("›"))
    assert tab.page.locator("#preview").is_visible()
    assert tab.said == []
    assert all(url.startswith((photos, "blob:", "data:")) for url in tab.asked)
    tab.page.set_input_files("#file", home / "broken.png")
    tab.page.wait_for_selector("#problem:not([hidden])")
    assert "expected an image file" in tab.text("problem")
    assert not tab.page.locator("#result").is_visible()


def test_an_action_is_answered_with_its_expected_cost(started: Any, home: Path):
    digits = [str(k) for k in range(10)]
    rows = [",".join([true, *("0" if true == answer else "1" for answer in digits), "0"]) for true in digits]
    (home / "costs.csv").write_text("\n".join([",".join(["", *digits, EVIL]), *rows]))
    with served(home / "photos", "--costs", str(home / "costs.csv")) as address:
        tab = Tab(started, address)
        tab.page.set_input_files("#file", home / "three.png")
        tab.page.wait_for_selector("#result:not([hidden])")
        assert tab.text("answer") == EVIL
        assert tab.text("path").startswith(f"expected cost: {EVIL} 0, ")
        assert tab.text("remark") == "This is an action, not a class: every class is expected to cost more."
        assert EVIL in tab.text("rules")
        assert tab.page.locator("#result img").count() == 0
        assert tab.page.locator("#tree .chosen").count() == 0
        assert tab.said == []


def test_a_dropped_photo_is_answered(started: Any, home: Path, photos: str):
    tab = Tab(started, photos)
    content = list((home / "three.png").read_bytes())
    moved = tab.page.evaluate_handle(
        """(bytes) => {
            const moved = new DataTransfer();
            moved.items.add(new File([new Uint8Array(bytes)], "three.png", {type: "image/png"}));
            return moved;
        }""",
        content,
    )
    tab.page.dispatch_event("#drop", "drop", {"dataTransfer": moved})
    tab.page.wait_for_selector("#result:not([hidden])")
    assert tab.text("answer") in {*TREE, *"0123456789"}


def test_a_row_is_decided_by_the_keyboard_and_names_stay_text(started: Any, home: Path):
    with served(home / "table") as address:
        tab = Tab(started, address)
        assert tab.page.evaluate("document.activeElement.id") == "row"  # ready to paste
        at = next(k for k in range(600, 900) if FOUND.target[k] == 0)
        tab.page.keyboard.insert_text(",".join(map(str, FOUND.data[at])))
        tab.page.keyboard.press("Control+Enter")
        tab.page.wait_for_selector("#result:not([hidden])")
        assert tab.text("answer") == EVIL
        assert tab.page.locator("#result img").count() == 0
        tab.page.fill("#row", "1,2,3")
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#problem:not([hidden])")
        assert "expected 64 values" in tab.text("problem")
        assert [line for line in tab.said if "400" not in line] == []


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_cut_or_overlaps(width: int, started: Any, home: Path, photos: str):
    tab = Tab(started, photos, width=width)
    tab.page.set_input_files("#file", home / "three.png")
    tab.page.wait_for_selector("#result:not([hidden])")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [panel.bounding_box() for panel in tab.page.locator(".panel").all()]
    for at, one in enumerate(boxes):
        assert one["x"] >= 0
        assert one["x"] + one["width"] <= width
        for other in boxes[at + 1 :]:
            apart = one["x"] + one["width"] <= other["x"] + 1 or other["x"] + other["width"] <= one["x"] + 1
            assert apart or one["y"] + one["height"] <= other["y"] + 1


def test_a_token_in_the_address_lets_the_page_in(started: Any, home: Path):
    with served(home / "photos", "--host", "0.0.0.0") as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        tab = Tab(started, local)
        tab.page.set_input_files("#file", home / "three.png")
        tab.page.wait_for_selector("#result:not([hidden])")
        without = new_page(started)
        without.goto(local.partition("#")[0])
        without.wait_for_selector("#problem:not([hidden])")
        assert "token" in without.locator("#problem").inner_text()
