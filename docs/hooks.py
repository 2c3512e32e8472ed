"""What mkdocs does beyond the pages in this folder: pages from other files, the API reference, and tutorials that ran.

- The home page is the README; `contributing.md` and `changelog.md` are the files of the repository.
- `api/` has a page for each room of the package, with its public names.
- `methods/` has a page for each objective: its file, the options from its docstring, and its evidence from results/.
- A tutorial is a Python file with `# %%` cells. It runs when the site is built, and the page shows what it printed.
- Links to files of the repository that have no page become plain text.
"""

import contextlib
import importlib
import inspect
import io
import os
import re
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COPIED = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}  # page: file
PUBLIC_SUBPACKAGES = ("doors.lightning", "doors.transformers", "report.figures")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def pages_of_tutorials() -> dict[str, Path]:
    """Return page -> Python file, for each tutorial."""
    return {f"tutorials/{path.stem}.md": path for path in sorted((DOCS / "tutorials").glob("*.py"))}


def rooms() -> list[str]:
    """Return the public packages of labelkin, by name."""
    import labelkin

    return sorted([*labelkin._ROOMS, *PUBLIC_SUBPACKAGES])


def cells(source: str) -> list[tuple[str, str]]:
    """Return the cells of a Python file in the percent format as ("markdown" or "code", text).

    >>> cells("# %% [markdown]\\n# # Title\\n#\\n# Text.\\n\\n# %%\\nprint(1)\\n")
    [('markdown', '# Title\\n\\nText.'), ('code', 'print(1)')]
    """
    found = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        first, _, body = part.partition("\n")
        if first.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)))
        else:
            found.append(("code", body.strip()))
    return found


def executed(source: str, name: str = "tutorial") -> str:
    """Run a tutorial in an empty folder and return its page: texts, code, and what each cell of code printed."""
    names: dict[str, Any] = {"__name__": name}
    page = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for kind, text in cells(source):
                if kind == "markdown":
                    page.append(text)
                    continue
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(text, name, "exec"), names)
                page.append(f"```python\n{text}\n```")
                if printed.getvalue().strip():
                    page.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        finally:
            os.chdir(before)
    return "\n\n".join(page) + "\n"


def api_page(room: str) -> str:
    """Return the page of a room: its docstring and every public name."""
    module = importlib.import_module(f"labelkin.{room}")
    public = sorted(module.__all__, key=str.lower)
    entries = "\n\n".join(f"::: labelkin.{room}.{name}" for name in public)
    return f"# labelkin.{room}\n\n{(module.__doc__ or '').strip()}\n\n{entries}\n"


def api_index() -> str:
    """Return the page that lists the rooms."""
    rows = []
    for room in rooms():
        summary = (importlib.import_module(f"labelkin.{room}").__doc__ or "").strip().split("\n\n")[0]
        rows.append(f"| [`labelkin.{room}`](labelkin.{room}.md) | {' '.join(summary.split())} |")
    head = [
        "# Reference",
        "Every public name, from its docstring; the examples run as tests. Objectives, `Taxonomy`, `Model`, `train`,\n"
        "`evaluate`, `compare`, `load_run` and `audit_predictions` can be imported from `labelkin` itself.",
    ]
    table = "\n".join(["| package | contents |", "| --- | --- |", *rows])
    return "\n\n".join([*head, table]) + "\n"


NOTATION = (
    r"$z$ are the outputs of a sample, $p = \mathrm{softmax}(z)$, $y$ is its class and $K$ the number of classes. "
    r"$\mathrm{CE}(t, z) = -\sum_k t_k \log \mathrm{softmax}(z)_k$, where a class stands for its one-hot vector."
)


def options_of(docstring: str) -> list[tuple[str, str]]:
    """Return the arguments of a docstring as (names, text).

    >>> options_of("Do it.\\n\\nArgs:\\n    a, b: the first\\n        two.\\n    c: the third.\\n\\nReturns:\\n    d: nothing.")
    [('a, b', 'the first two.'), ('c', 'the third.')]
    """
    _, _, after = docstring.partition("Args:\n")
    part = re.split(r"\n(?=\S)", after)[0]
    found: list[list[str]] = []
    for line in filter(str.strip, part.splitlines()):
        if (entry := re.match(r"    (\S[^:]*): (.*)", line)) is not None:
            found.append([entry[1], entry[2]])
        else:
            found[-1][1] += " " + line.strip()
    return [(name, " ".join(text.split())) for name, text in found]


def option_rows(kind: type) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of each option in the docstring of an objective.

    Options that are described "as for" another class get the words of that class.
    """
    from labelkin import objectives

    own, shared = (inspect.signature(of).parameters for of in (kind, objectives.Objective))
    rows = []
    for names, text in options_of(inspect.cleandoc(kind.__doc__ or "")):
        if "**shared" in names:
            continue
        other = re.fullmatch(r"as for `(\w+)`\.", text)
        for name in names.split(", "):
            meaning = text
            if other is not None:
                found = options_of(inspect.cleandoc(getattr(objectives, other[1]).__doc__ or ""))
                meaning = next(said for several, said in found if name in several.split(", "))
            default = (own if name in own else shared)[name].default
            shown = "required" if default is inspect.Parameter.empty else f"`{default!r}`"
            rows.append((f"`{name}`", shown, meaning.replace("|", "\\|")))
    return rows


def method_pages() -> dict[str, str]:
    """Return the page of each objective; an objective without a file in docs/methods is an error."""
    from labelkin.objectives import OBJECTIVES
    from labelkin.papers import method_evidence

    evidence = method_evidence(ROOT / "results")
    pages = {}
    for name, kind in OBJECTIVES.items():
        written = (DOCS / "methods" / f"{name}.md").read_text(encoding="utf-8").rstrip()
        equation, paper, rest = written.partition("## Paper")
        rows = option_rows(kind)
        table = "\n".join(
            ["| option | default | meaning |", "| --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows)]
        )
        reference = f"[`labelkin.{kind.__name__}`](../api/labelkin.objectives.md#labelkin.objectives.{kind.__name__})"
        shared = "[options of all objectives](../methods.md)"
        options = f"`--objective {name}` on the command line, {reference} in Python, with the {shared}"
        found = evidence.get(name)
        shown = (
            "No results in this repository compare it with one-hot."
            if found is None
            else "From `results/*.json`, with 95 % intervals; [all tables](../results.md) say how they were measured.\n\n"
            + found
        )
        if name == "one-hot":
            shown = "One-hot is the reference of [all tables](../results.md)."
        pages[f"methods/{name}.md"] = (
            "\n\n".join(
                [
                    equation.rstrip() + f"\n\n{NOTATION}",
                    (paper + rest).rstrip(),
                    f"## Options\n\n{options}{' and' if rows else '.'}" + (f":\n\n{table}" if rows else ""),
                    f"## Evidence\n\n{shown}",
                ]
            )
            + "\n"
        )
    return pages


def linked(text: str, source: Path, page: str, pages: dict[str, str]) -> str:
    """Return the Markdown of a file with links that fit its place on the site.

    Args:
        text: the Markdown.
        source: the file that it comes from, relative to the repository.
        page: the page that it becomes, relative to the site.
        pages: file of the repository -> page or asset of the site.

    Returns:
        The Markdown. Links to a file with a page lead to the page, and links to other files become plain text.
        Links to nothing stay, so that mkdocs reports them.
    """

    def replace(found: re.Match[str]) -> str:
        image, label, target, anchor = found.groups()
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        file = os.path.normpath((source.parent / target).as_posix()).replace(os.sep, "/")
        if file in pages:
            there = os.path.relpath(pages[file], PurePosixPath(page).parent).replace(os.sep, "/")
            return f"{image}[{label}]({there}{anchor or ''})"
        return label if (ROOT / file).exists() else found[0]

    parts = CODE.split(text)  # code is at the odd places; it may be the label of a link, but contains none
    marked = "".join(part if i % 2 == 0 else f"\0{i}\0" for i, part in enumerate(parts))
    return re.sub(r"\0(\d+)\0", lambda found: parts[int(found[1])], LINK.sub(replace, marked))


def on_config(config: Any) -> Any:
    """Put the pages of the rooms and of the methods into the navigation."""
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = ["api/index.md", *(f"api/labelkin.{room}.md" for room in rooms())]
        if "Methods" in section:
            from labelkin.objectives import OBJECTIVES

            section["Methods"] = ["methods.md", *(f"methods/{name}.md" for name in OBJECTIVES)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    made = {page: (ROOT / file).read_text(encoding="utf-8") for page, file in COPIED.items()}
    made["api/index.md"] = api_index()
    made |= {f"api/labelkin.{room}.md": api_page(room) for room in rooms()}
    made |= {page: executed(path.read_text(encoding="utf-8"), path.name) for page, path in pages_of_tutorials().items()}
    for page, text in method_pages().items():
        files.remove(files.get_file_from_path(page))
        made[page] = text
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links between files of the repository to their pages."""
    uri = page.file.src_uri
    pages = {f"docs/{file.src_uri}": file.src_uri for file in files}
    pages |= {file: made for made, file in COPIED.items()}
    pages |= {path.relative_to(ROOT).as_posix(): made for made, path in pages_of_tutorials().items()}
    return linked(markdown, Path(COPIED.get(uri, f"docs/{uri}")), uri, pages)
