"""The command `labelkin serve`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin.cli._decision_options import RunCosts, RunCoverage, RunRule, RunThreshold
from labelkin.cli._run import costs_of_run, say_caveats
from labelkin.cli._show import say


def serve(
    run: Annotated[Path, Argument(help="Folder of a finished run on images, texts or rows of features.")],
    decide: RunRule = None,
    threshold: RunThreshold = None,
    coverage: RunCoverage = None,
    costs: RunCosts = None,
    host: Annotated[
        str,
        Option(help="Address to listen at. Other than this machine's own, requests need the token that is printed."),
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen at; 0 for any free one.")] = 8765,
) -> None:
    """Serve a run on a local web page, and as JSON: drop a photo, or paste a text or a row of features.

    The page shows the answer, its path in the class tree with probabilities, and what other rules would answer.
    """
    from labelkin.serve import serve as run_server

    matrix = costs_of_run(costs, run)
    say_caveats(run, coverage)
    run_server(
        run,
        host=host,
        port=port,
        decide=decide,
        threshold=threshold,
        coverage=coverage,
        costs=matrix,
        say=say,
    )
