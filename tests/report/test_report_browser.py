"""The page in a real Chromium: what it asks for, what its controls do, and whether everybody can read it."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from labelkin.analysis import Activity, Memory, Points
from labelkin.audit import audit
from labelkin.report import figures, write_audit_page
from labelkin.report._inspect_run import png_uri, subject
from labelkin.report._learned import Features, class_similarity
from labelkin.report._mistakes import mistakes_of
from labelkin.report._page_model import Page, Panel, Verdict
from labelkin.report._write import write_page
from labelkin.report.figures._learning import Curve
from labelkin.structure import _catalogue as catalogue
from support.browsing import Opened, browser, new_page

pytestmark = pytest.mark.slow

pytest_plugins = ["support.report_pages"]
OBJECTIVES = ["one-hot", "label-embedding", "static-labels"]  # as the runs have them
FIGURES = [
    "pareto",
    "curves",
    "decisions",
    "confusions",
    "calibration",
    "operating",
    "similarity",
    "trees",
    "projection",
    "layers",
]


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def wide(started: Any, digits_page: Path) -> Opened:
    opened = Opened(started, digits_page)
    opened.walk()
    return opened


def plot(opened: Opened, key: str) -> Any:
    return opened.page.locator(f"figure[data-figure={key}] .plot")


def test_it_loads_in_silence_and_asks_for_nothing_but_itself(wide: Opened, digits_page: Path):
    assert wide.said == []
    assert [url for url in wide.asked if not url.startswith("data:")] == [digits_page.as_uri()]
    assert wide.page.eval_on_selector_all("figure[data-drawn]", "fs => fs.map((f) => f.dataset.figure)") == FIGURES


def test_the_leaderboard_is_whole_on_a_laptop(wide: Opened):
    frame = wide.page.locator(".board .scroll")
    assert frame.evaluate("box => box.scrollWidth") <= frame.evaluate("box => box.clientWidth")


def names(opened: Opened) -> list[str]:
    return opened.page.eval_on_selector_all("#leaderboard tbody th", "heads => heads.map((h) => h.dataset.value)")


def column(opened: Opened, place: int) -> list[float]:
    cells = opened.page.eval_on_selector_all(
        f"#leaderboard tbody td:nth-child({place + 1})", "cells => cells.map((c) => c.dataset.value ?? null)"
    )
    return [None if cell is None else float(cell) for cell in cells]


def test_a_heading_sorts_better_first_and_the_other_way_next(wide: Opened):
    heads = wide.page.locator("#leaderboard thead button")
    ece = [text.strip() for text in heads.all_inner_texts()].index("ECE %")
    heads.nth(ece).click()
    rising = column(wide, ece)
    assert rising[:2] == sorted(rising[:2])
    assert rising[2] is None  # static labels have none, and none comes last
    heads.nth(ece).click()
    assert column(wide, ece) == [*rising[1::-1], None]
    assert heads.nth(ece).locator("..").get_attribute("aria-sort") == "descending"
    heads.nth(0).click()
    assert names(wide) == sorted(OBJECTIVES)


def test_chips_take_curves_away_and_bring_them_back(wide: Opened):
    box = wide.page.locator("figure[data-figure=curves]")
    lines = "fs => fs[0]._fullData.filter((t) => t.visible === true && t.mode === 'lines' && t.line.width > 0).length"
    count = lambda: wide.page.eval_on_selector_all("figure[data-figure=curves] .plot", lines)  # noqa: E731
    assert count() == 3
    box.get_by_label("label-embedding").uncheck()
    assert count() == 2
    box.get_by_role("button", name="None").click()
    assert count() == 0
    box.get_by_role("button", name="All").click()
    assert count() == 3


def hovered(opened: Opened, key: str, x: float, y: float) -> str:
    """What is said over a share of the way across and down a figure's drawing area."""
    area = plot(opened, key).locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    for step in (0.0, 1.0):  # a pointer that moves
        opened.page.mouse.move(box["x"] + x * box["width"] + step, box["y"] + y * box["height"] + step)
    opened.page.wait_for_selector(f"figure[data-figure={key}] .hovertext", state="attached")
    return plot(opened, key).locator(".hovertext").first.text_content() or ""


def test_hovering_names_the_pair_and_the_value(wide: Opened):
    told = hovered(wide, "similarity", 0.05, 0.15)  # first column, second row
    order = wide.page.evaluate("document.querySelector('figure[data-figure=similarity] .plot').layout.xaxis.ticktext")
    shown = wide.page.evaluate("document.querySelector('figure[data-figure=similarity] .plot').calcdata[0][0].z[1][0]")
    assert told == f"{order[1]}{order[0]}similarity {shown:.3f}"
    assert hovered(wide, "confusions", 0.05, 0.05).endswith(("right 0 of 0", "36", "35", "37"))


def test_zooming_and_going_back(wide: Opened):
    figure = wide.page.locator("figure[data-figure=confusions]")
    extent = lambda: wide.page.evaluate(  # noqa: E731
        "document.querySelector('figure[data-figure=confusions] .plot')._fullLayout.xaxis.range"
    )
    assert extent() == [-0.5, 9.5]
    figure.get_by_role("button", name="Zoom in").click()
    assert extent() == [2, 7]
    figure.get_by_role("button", name="Reset").click()
    assert extent() == [-0.5, 9.5]


def test_choosing_an_objective_shows_it(wide: Opened):
    page = wide.page
    assert page.locator("#subject h3").first.inner_text() == "Costliest confusions"
    page.get_by_label("Details of").select_option(label="static-labels")
    assert page.locator("#learned").inner_text() == "What static-labels learned"
    assert page.locator("figure[data-figure=calibration] .absent").count() == 0  # its scores are calibrated
    page.locator("#leaderboard").get_by_role("button", name="one-hot : show details").click()
    assert page.locator("#learned").inner_text() == "What one-hot learned"
    assert page.evaluate("document.getElementById('subject-choice').selectedOptions[0].text") == "one-hot"
    page.locator("figure[data-figure=projection]").scroll_into_view_if_needed()
    page.get_by_label("superclass", exact=True).check()
    wide.walk()
    assert wide.said == []


def test_each_figure_has_a_name_and_a_table(wide: Opened):
    wide.walk()
    for key in FIGURES:
        drawn = plot(wide, key)
        assert drawn.get_attribute("role") == "img"
        assert len(drawn.get_attribute("aria-label") or "") > 20
        behind = wide.page.locator(f"figure[data-figure={key}] details")
        behind.locator("summary").click()
        behind.locator("tbody tr").nth(1).wait_for()
        assert behind.locator("thead th[scope=col]").count() > 1
        behind.locator("summary").click()


REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
    .filter((e) => e.checkVisibility() && !(e.type === "radio" && !e.checked))"""


def test_the_keyboard_reaches_every_control(wide: Opened):
    page = wide.page
    wanted = page.evaluate(f"() => {{ window.wanted = ({REACHABLE})(); return window.wanted.length; }}")
    assert wanted > 40
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    page.evaluate(
        "() => { window.met = new Set(); document.addEventListener('focusin', (e) => window.met.add(e.target)); }"
    )
    for _ in range(wanted + 10):
        page.keyboard.press("Tab")
    missed = page.evaluate("() => window.wanted.filter((e) => !window.met.has(e)).map((e) => e.outerHTML.slice(0, 90))")
    assert missed == []


# The contrast of all text with what it stands on, by WCAG 2's formula; large text needs 3, the rest 4.5.
CONTRAST = """() => {
    const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const ground = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const found = parse(getComputedStyle(e).backgroundColor);
            if (found.length && found[3] !== 0) return found;
        }
        return [255, 255, 255];
    };
    const bad = [];
    let count = 0;
    for (const e of document.querySelectorAll("body *")) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        if (!own || !e.checkVisibility() || e.closest("script, style, noscript, .skip, .hidden")) continue;
        const style = getComputedStyle(e);
        const ink = parse(e instanceof SVGElement ? style.fill : style.color);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
        count += 1;
        if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) bad.push(`${e.textContent.trim().slice(0, 30)} ${style.color}`);
    }
    return {count, bad};
}"""


def test_text_can_be_read_in_light_and_dark(wide: Opened):
    wide.walk()
    assert wide.page.evaluate(CONTRAST)["bad"] == []
    ground = "getComputedStyle(document.body).backgroundColor"
    before = wide.page.evaluate(ground)
    wide.page.get_by_role("button", name="Switch to dark colors").click()
    assert wide.page.evaluate(ground) != before
    found = wide.page.evaluate(CONTRAST)
    assert found["bad"] == []
    assert found["count"] > 200
    ticks = plot(wide, "curves").locator(".xtick text").first.evaluate("e => getComputedStyle(e).fill")
    assert ticks == "rgb(232, 237, 243)"
    wide.page.get_by_role("button", name="Switch to light colors").click()
    assert wide.page.evaluate(ground) == before


# What sticks out of its panel or lies on another one; what scrolls inside its own frame does not count.
LAYOUT = """() => {
    const bad = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) bad.push(`page ${root.scrollWidth} > ${root.clientWidth}`);
    const box = (e) => e.getBoundingClientRect();
    const parts = [...document.querySelectorAll(".verdict, .panel, .missing, .chooser, #made")];
    const panels = parts.filter((e) => e.checkVisibility());
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    panels.forEach((a, i) => panels.slice(i + 1).forEach((b) => {
        if (getComputedStyle(a).position !== "sticky" && getComputedStyle(b).position !== "sticky" && meet(box(a), box(b))) {
            bad.push(`${a.className} meets ${b.className}`);
        }
    }));
    for (const panel of panels) {
        const edge = box(panel);
        if (edge.left < -1 || edge.right > root.clientWidth + 1) bad.push(`${panel.className} leaves the page`);
        for (const e of panel.querySelectorAll("*")) {
            if (e.closest(".scroll, .plot-frame, pre, .hidden") || !e.checkVisibility()) continue;
            const own = box(e);
            if (own.right > edge.right + 1 || own.left < edge.left - 1) bad.push(`${e.tagName} ${e.textContent.slice(0, 30)}`);
        }
    }
    for (const drawing of document.querySelectorAll(".plot")) {
        const edge = box(drawing);
        for (const text of drawing.querySelectorAll("text")) {
            const own = box(text);
            if (own.width && (own.left < edge.left - 2 || own.right > edge.right + 2 || own.top < edge.top - 2)) {
                bad.push(`cut: ${text.textContent.slice(0, 30)} in ${drawing.closest("figure").dataset.figure}`);
            }
        }
    }
    return bad;
}"""


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_nothing_overlaps_or_is_cut(width: int, wide: Opened, started: Any, digits_page: Path):
    opened = wide if width == 1440 else Opened(started, digits_page, width=width)
    opened.walk()
    assert opened.page.evaluate(LAYOUT) == []


def test_paper_has_every_figure_in_light_colours(started: Any, digits_page: Path):
    opened = Opened(started, digits_page, scheme="dark")
    assert opened.page.pdf()[:5] == b"%PDF-"
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator("figure[data-drawn]").count() == len(FIGURES)
    ticks = plot(opened, "curves").locator(".xtick text").first.evaluate("e => getComputedStyle(e).fill")
    assert ticks == "rgb(27, 36, 48)"
    assert opened.said == []


def test_names_stay_text_in_the_browser(started: Any, hostile_page: tuple[Path, list[str]]):
    path, given = hostile_page
    opened = Opened(started, path, width=390)
    opened.walk()
    assert opened.page.evaluate("window.broken") is None
    assert opened.said == []
    assert opened.page.evaluate(LAYOUT) == []
    assert opened.page.locator("#subject img").count() == 0
    cells = opened.page.locator("#subject tbody th bdi").all_inner_texts()
    assert set(given) <= set(cells)
    assert any(text.startswith("<script") for text in plot(opened, "trees").locator("text").all_text_contents())


# Whether the title of the x axis lies on the map, by figure.
TITLE_ON_MAP = """() => [...document.querySelectorAll("figure[data-drawn]")].filter((figure) => {
    const [title, map] = [figure.querySelector(".xtitle"), figure.querySelector(".nsewdrag")];
    return title && map && title.getBoundingClientRect().top < map.getBoundingClientRect().bottom;
}).map((figure) => figure.dataset.figure)"""


def test_a_hundred_classes_on_a_telephone(started: Any, tmp_path: Path):
    """Class labels do not fit there; the title of the axis stays below the map, also after zooming."""
    path = tmp_path / "hundred.html"
    write_page(hundred_classes(), path)
    opened = Opened(started, path, width=390)
    opened.walk()
    assert opened.page.evaluate(TITLE_ON_MAP) == []
    assert opened.page.locator("figure[data-figure=confusions] .ytick text").count() == 0
    zoom = opened.page.locator("figure[data-figure=confusions]").get_by_role("button", name="Zoom in")
    for _ in range(3):
        zoom.click()
    opened.page.wait_for_selector("figure[data-figure=confusions] .xtick text")
    assert opened.page.evaluate(TITLE_ON_MAP) == []


def hundred_classes() -> Page:
    """A page as CIFAR-100 with 14 objectives and 5 seeds gives it: true sizes, numbers and pictures out of a hat."""
    tree, chance = catalogue.taxonomy("cifar100"), torch.Generator().manual_seed(0)
    scores = torch.randn(10_000, 100, generator=chance).log_softmax(-1)
    target = torch.arange(10_000) % 100
    mistakes = mistakes_of(scores, target, tree, log_probs=True)
    points = Points(torch.randn(1_000, 2, generator=chance).double(), torch.zeros(2), 1.0)
    distances = torch.rand(6, 100, 100, generator=chance)
    activity = Activity(tuple("abcdef"), distances, torch.full((100,), 10), Memory((), (), (), 0))
    noise = torch.randint(0, 256, (3, 32, 32), generator=chance, dtype=torch.uint8)
    found = subject(
        "one",
        tree,
        similarity=class_similarity(torch.randn(100, 100, generator=chance), tree),
        features=Features(points, target[:1_000], activity),
        mistakes=mistakes,
        images=[[png_uri(noise)] * 4] * len(mistakes.samples),
    )
    curves = [Curve(str(i), tuple(range(1, 101)), (0.5,) * 100, (0.1,) * 100, 50) for i in range(14)]
    panel = Panel("curves", "Learning curves", "Of nothing", {"whole": figures.learning_curves(curves)}, views="Show")
    labels = [f"objective {i}" for i in range(14)]
    return Page(
        "100 classes",
        ("cifar100",),
        Verdict("tie", None, "Stay", "No difference shown"),
        overview=(panel,),
        subjects=tuple(found._replace(label=label) for label in labels),
    )


FIXED_WORK = """() => {
    const counts = new Map();
    for (let i = 0; i < 1_000_000; i++) counts.set("n" + (i % 5000), i);
    return counts.size;
}"""


def thread_seconds(page: Any, work: Callable[[], object]) -> float:
    """Return the time that the main thread of a new page runs until `work()` is done."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    work()
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in found if metric["name"] == "TaskDuration"))


def test_a_hundred_classes_are_light_enough_and_soon_usable(started: Any, tmp_path: Path):
    """In the time of the page's own thread, as a multiple of a fixed piece of work on such a thread."""
    path = tmp_path / "hundred.html"
    write_page(hundred_classes(), path)
    assert path.stat().st_size < 25e6
    page = new_page(started, viewport={"width": 1440, "height": 900})
    blank = new_page(started)
    unit = thread_seconds(blank, lambda: blank.evaluate(FIXED_WORK))

    def load() -> None:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawing]", state="attached")

    assert 0 < thread_seconds(page, load) / unit < 150  # about 20 on a quiet machine
    page.get_by_label("Details of").select_option(label="objective 9")
    page.locator("figure[data-figure=confusions]").scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-figure=confusions] .xtick text")
    labels = page.locator("figure[data-figure=confusions] .ytick text")
    boxes = [box for box in (label.bounding_box() for label in labels.all()) if box]
    assert len(boxes) == 100
    assert all(a["y"] + a["height"] <= b["y"] + 3 for a, b in pairwise(sorted(boxes, key=lambda box: box["y"])))


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_of_an_audit_fits_the_screen(started: Any, tmp_path: Path, width: int):
    """Nothing is cut at the right, and no panel or text lies over another one."""
    tree, target = catalogue.taxonomy("fashion-mnist"), torch.arange(10).repeat(30)
    scores = 3 * torch.eye(10)[target] + 2 * torch.randn(300, 10, generator=torch.Generator().manual_seed(0))
    found = audit({"target": target, "logits": scores}, classes=tree.classes, taxonomy=tree)
    opened = Opened(started, write_audit_page(found, tmp_path / "audit.html"), width=width)
    opened.walk()
    assert opened.said == []
    drawn = opened.page.eval_on_selector_all("figure[data-drawn]", "fs => fs.map((f) => f.dataset.figure)")
    assert drawn == ["cost", "calibration", "risk", "confusions", "learned"]
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = opened.page.eval_on_selector_all(
        ".panel", "all => all.map((p) => p.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom])"
    )
    assert len(boxes) == 10
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= width
        for other in boxes[i + 1 :]:
            assert left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom
    cut = opened.page.eval_on_selector_all(
        ".panel .scroll, .verdict *",
        "all => all.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).length",
    )
    assert cut == 0
    legends = opened.page.eval_on_selector_all(
        "figure",
        "fs => fs.filter((f) => { const l = f.querySelector('.legend'), a = f.querySelector('.nsewdrag');"
        "return l && a && l.getBoundingClientRect().bottom > a.getBoundingClientRect().top + 1; }).length",
    )
    assert legends == 0
