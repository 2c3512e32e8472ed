"""Runs as one page to look at."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin.cli.show import aside, results_last, say


def report(
    source: Annotated[
        Path, Argument(help="A folder of runs, one run's folder, or a plan in .yaml.", metavar="RUNS|PLAN")
    ] = Path("runs"),
    output: Annotated[Path, Option("--output", "-o", help="The .html file to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    runs: Annotated[Path, Option(help="Where the runs of a plan are kept.")] = Path("runs"),
    reference: Annotated[
        str | None, Option(help="The objective that the others are compared with. Default: one-hot, or the plan's.")
    ] = None,
    tsne: Annotated[
        bool, Option("--tsne", help="Features in the plane by t-SNE, which takes seconds an objective, not by MDS.")
    ] = False,
) -> None:
    """Write a page with the result, curves, learned labels and mistakes: one file, no network.

    Runs of several settings (data, backbone, training) give a page each: report-1.html, report-2.html and so on.
    """
    from labelkin.experiments.workspace import DataCache
    from labelkin.report import read_comparisons, targets, write_report

    found = read_comparisons(source, runs=runs, reference=reference)
    paths, sets = targets(output, len(found.comparisons)), DataCache()
    with results_last():
        for comparison, path in zip(found.comparisons, paths, strict=True):
            write_report(
                comparison,
                path,
                projection="tsne" if tsne else "mds",
                data=sets,
                problems=found.problems,
                say=aside,
            )
    for path in paths:
        say(f"The report is in {path}")
