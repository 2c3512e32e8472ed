"""The documentation: tutorials that ran, pages that are made from other files, and a site that builds without a warning."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from labelkin import Taxonomy
from support.browsing import browser, new_page
from support.requires import skip_unless
from support.snippets import fences

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TUTORIALS = sorted(DOCS.glob("tutorials/*.py"))


def number(pattern: str, text: str) -> float:
    """Return the number that a pattern captures in what a tutorial printed."""
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


CLAIMS: dict[str, list[Callable[[str], bool]]] = {  # what the text of a tutorial says about its output
    "audit_a_model": [
        lambda shown: number(r"severity of mistakes: (\S+)", shown) > 1,
        lambda shown: "Costliest confusions" in shown,
    ],
    "cheaper_decisions": [
        lambda shown: number(r"least .*accuracy (\S+),", shown) < number(r"most .*accuracy (\S+),", shown),
        lambda shown: number(r"least .*mean cost (\S+)", shown) < number(r"most .*mean cost (\S+)", shown),
        lambda shown: number(r"interval (\S+) to", shown) > 0,
        lambda shown: number(r"after\n(\d+) decisions changed", shown) < 10,
    ],
    "own_loop": [
        lambda shown: number(r"entropy: accuracy (\S+),", shown) > 0.9,
        lambda shown: number(r"kin: accuracy (\S+),", shown) > 0.9,
        lambda shown: number(r"interval (\S+) to", shown) > 0,
    ],
    "own_photos": [
        lambda shown: "10 classes, 2,000 train, 1,000 test" in shown,
        lambda shown: "trousers and dresses" in shown,
        lambda shown: number(r"accuracy: (\S+)", shown) > 0.5,
        lambda shown: "For 95 % right answers" in shown,
    ],
    "own_texts": [
        lambda shown: number(r"^(\d+) modules in", shown) > 20,
        lambda shown: number(r"kin: accuracy (\S+),", shown) > 0.6,
        lambda shown: number(r"one-hot: accuracy (\S+),", shown) > 0.6,
        lambda shown: "For 95 % right answers" in shown,
        lambda shown: "'path': 'root/" in shown,
    ],
}


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = load_script("hooks")


@pytest.mark.long
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_its_output(path: Path):
    pytest.importorskip("sklearn")
    here = Path.cwd()
    page = hooks.executed(path.read_text(encoding="utf-8"), path.name)
    assert Path.cwd() == here
    assert page.startswith("# ")
    shown = "".join(code for language, code in fences(page) if language == "text")
    for claim in CLAIMS[path.stem]:
        assert claim(shown), shown


def test_the_cells_of_a_tutorial():
    source = "# %% [markdown]\n# # Title\n#\n# Some `text`.\n\n# %%\nx = 1\nprint(x)\n\n# %%\nprint(x + 1)  # not # %% a cell\n"
    assert hooks.cells(source) == [
        ("markdown", "# Title\n\nSome `text`."),
        ("code", "x = 1\nprint(x)"),
        ("code", "print(x + 1)  # not # %% a cell"),
    ]
    page = hooks.executed(source)
    assert fences(page) == [
        ("python", "x = 1\nprint(x)\n"),
        ("text", "1\n"),
        ("python", "print(x + 1)  # not # %% a cell\n"),
        ("text", "2\n"),
    ]


def test_a_tutorial_that_fails_ends_the_build_in_the_folder_where_it_began():
    here = Path.cwd()
    with pytest.raises(ZeroDivisionError):
        hooks.executed("# %%\n1 / 0\n")
    assert Path.cwd() == here


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/audit.md#input)", "[a](audit.md#input)"),
        ("[`a`](docs/audit.md)", "[`a`](audit.md)"),
        ("![p](docs/images/p.png)", "![p](images/p.png)"),
        ("[c](CONTRIBUTING.md)", "[c](contributing.md)"),
        ("[code](src/labelkin/_lazy.py)", "code"),
        ("[gone](docs/gone.md)", "[gone](docs/gone.md)"),
        ("[web](https://a.org/docs/audit.md) [here](#there)", "[web](https://a.org/docs/audit.md) [here](#there)"),
        ("`[a](docs/audit.md)`", "`[a](docs/audit.md)`"),
        ("```md\n[a](docs/audit.md)\n```\n[a](docs/audit.md)", "```md\n[a](docs/audit.md)\n```\n[a](audit.md)"),
    ],
)
def test_links_of_the_readme_fit_the_site(text: str, expected: str):
    pages = {"docs/audit.md": "audit.md", "docs/images/p.png": "images/p.png", "CONTRIBUTING.md": "contributing.md"}
    assert hooks.linked(text, Path("README.md"), "index.md", pages) == expected


def test_links_between_folders_fit_the_site():
    pages = {"docs/tutorials/a.py": "tutorials/a.md", "docs/audit.md": "audit.md", "README.md": "index.md"}
    page = hooks.linked("[t](../tutorials/a.py) [r](../../README.md)", Path("docs/how-to/x.md"), "how-to/x.md", pages)
    assert page == "[t](../tutorials/a.md) [r](../index.md)"


def test_every_public_package_has_a_page():
    from test_layers import PUBLIC_SUBPACKAGES, ROOMS

    assert set(hooks.rooms()) == {*ROOMS, *(name.replace("/", ".") for name in PUBLIC_SUBPACKAGES)} - {"cli"}
    page = hooks.api_page("decide")
    assert "::: labelkin.decide.least_cost\n" in page


@pytest.mark.long
def test_every_objective_has_its_page():
    """A page with equation, paper and use for each name of the registry, and options and evidence from code and results."""
    pytest.importorskip("safetensors")
    from labelkin.objectives import OBJECTIVES

    assert {path.stem for path in (DOCS / "methods").glob("*.md")} == set(OBJECTIVES)
    pages = hooks.method_pages()
    for page, text in pages.items():
        sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert sections == ["Equation", "Paper", "When it helps", "Options", "Evidence"], page
        assert text.count("$$") == 2, page
        assert all(len(part.split()) > 3 for part in re.split(r"^## .+$", text, flags=re.MULTILINE)), page
    kin = pages["methods/kin.md"]
    assert "| `ancestors` | `0.1` | weight of the ancestors term. |" in kin
    assert "| `alpha` | `0.9` | confidence of z2 above which the hinge applies. |" in kin  # "as for `LabelEmbedding`"
    assert "| `features` | `None` | width of the features;" in kin
    assert not [page for page, text in pages.items() if "| as for " in text]
    assert "| `classes` | required | number of classes, or their names. |" in pages["methods/label-embedding.md"]
    leaderboard = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    cost = re.search(r"^\| kin \| \d+ \| [\d.]+ \| ([^|]+) \|", leaderboard, re.MULTILINE)
    assert cost is not None
    assert cost[1] in kin
    names = re.findall(r"^\| \[`([a-z-]+)`\]\(methods/\1\.md\)", (DOCS / "methods.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(names) == sorted(OBJECTIVES)


def test_the_options_of_a_docstring():
    text = "Do it.\n\nArgs:\n    a, b: the first\n        two.\n    c: the third: last.\n\nReturns:\n    d: nothing."
    assert hooks.options_of(text) == [("a, b", "the first two."), ("c", "the third: last.")]
    assert hooks.options_of("Do it.") == []


def test_the_files_of_a_release_agree():
    from labelkin import __version__

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    date = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert version is not None
    assert date is not None
    assert version[1] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changelog, re.MULTILINE)[:2] == ["[Unreleased]", f"[{__version__}] - {date[1]}"]


def test_the_changelog_says_everything_once():
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        found = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert found == [kind for kind in kinds if kind in found], version.splitlines()[0]
        entries = re.findall(r"^- (.{60})", version, re.MULTILINE)
        assert len(set(entries)) == len(entries)


def test_a_milder_mistake_is_found_and_drawn():
    """Of four samples: one right, one milder mistake, one mistake of the same cost, one mistake that is corrected."""
    pytest.importorskip("PIL")
    pictures = load_script("pictures")
    tree = Taxonomy.from_nested({"shoes": ["boot", "sandal", "sneaker"], "bags": ["bag"]})
    unsure = [0.08, 0.3, 0.22, 0.4]
    probs = torch.tensor([[0.9, 0.1, 0.0, 0.0], unsure, [0.0, 0.0, 0.1, 0.9], unsure], dtype=torch.float64)
    target = torch.tensor([0, 2, 2, 1])
    assert pictures.milder_mistakes(probs, target, tree).tolist() == [1]
    drawn = pictures.draw(pictures.Mistake(np.zeros((4, 4), np.uint8), probs[1], 2, 3, 1, tree))
    words = [found.text for found in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert words[:3] == ["The image", "What the model says", "What is decided"]
    assert words[3] == "true class: sneaker"
    pairs = dict(zip(words[4:16:2], words[5:17:2], strict=True))
    assert pairs == {"shoes": "60 %", "sandal": "30 %", "sneaker": "22 %", "boot": "8 %", "bags": "40 %", "bag": "40 %"}
    assert words[16:19] == ["Most probable class", "bag", "a mistake that costs 2"]
    assert words[19:] == ["Least expected cost", "sandal", "a mistake that costs 1"]


def test_the_pictures_are_small_and_used():
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    used = {
        Path(name).name for path in pages for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text("utf-8"))
    }
    assert used == {path.name for path in (DOCS / "images").iterdir()}
    assert all(path.stat().st_size <= 300_000 for path in (DOCS / "images").iterdir())


class Links(HTMLParser):
    """The ids of a page, and the targets of its links and images."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []  # what a browser asks for by itself

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif (tag, name) in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")) and value:
                self.targets.append(value)
                if tag != "a":
                    self.loaded.append(value)


def broken_links(site: Path) -> list[str]:
    """Return the links between the pages of a built site that lead nowhere."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            there = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            found = there.exists() and (
                not parts.fragment or there not in pages or unquote(parts.fragment) in pages[there].ids
            )
            if not found:
                broken.append(f"{path.relative_to(site)}: {target}")
    return broken


def test_a_broken_link_is_seen(tmp_path: Path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><img src="c.png"><a href="https://d">3</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="x">b</h1><a href="#x">4</a><a href="./">5</a>')
    (tmp_path / "index.html").write_text("")
    assert broken_links(tmp_path) == ["a.html: b.html#y", "a.html: c.png"]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_lead_somewhere(tmp_path: Path):
    present = all(
        importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers")
    )
    skip_unless(present, "mkdocs with material and mkdocstrings", "site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-4000:]
    assert broken_links(tmp_path / "site") == []
    for path in (tmp_path / "site").rglob("*.html"):
        page = Links()
        page.feed(path.read_text(encoding="utf-8"))
        assert [url for url in page.loaded if urlsplit(url).netloc] == [], path  # nothing from another host
    methods = (tmp_path / "site" / "methods.html").read_text(encoding="utf-8")
    assert methods.count('class="arithmatex"') > 20
    with browser() as started:
        page = new_page(started)
        for path in [tmp_path / "site" / "methods.html", *(tmp_path / "site" / "methods").glob("*.html")]:
            page.goto(path.as_uri())
            page.wait_for_selector(".katex")
            assert page.locator(".katex-error").count() == 0, path
            assert page.locator(".arithmatex:not(:has(.katex))").count() == 0, path
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((tmp_path / "site" / "index.html").as_uri())  # search works without a server
        page.locator("input.md-search__input").fill("partial labels")
        page.wait_for_selector(".md-search-result__link[href*='partial-labels']", state="attached")
        assert said == []
    reference = (tmp_path / "site" / "api" / "labelkin.decide.html").read_text(encoding="utf-8")
    assert 'id="labelkin.decide.least_cost"' in reference
    tutorial = (tmp_path / "site" / "tutorials" / "cheaper_decisions.html").read_text(encoding="utf-8")
    assert "saved per parcel" in tutorial
