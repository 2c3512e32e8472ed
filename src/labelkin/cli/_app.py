"""The Typer app with all commands."""

from typing import Annotated

import typer

from labelkin._version import __version__
from labelkin.cli._audit import audit
from labelkin.cli._bench import app as bench_app
from labelkin.cli._compare import compare, demo
from labelkin.cli._decide import decide
from labelkin.cli._errors import ErrorGroup
from labelkin.cli._lists import app as data_app
from labelkin.cli._lists import backbones, objectives
from labelkin.cli._report import report, reproduce
from labelkin.cli._run import diagnose, evaluate, export, inspect, predict, serve, translate
from labelkin.cli._runs import app as runs_app
from labelkin.cli._taxonomy import app as taxonomy_app
from labelkin.cli._train import train

app = typer.Typer(cls=ErrorGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"labelkin {__version__}")
        raise typer.Exit


@app.callback()
def labelkin(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Make the mistakes of classifiers cheaper.

    Audit the model you have, decide better with it, and train a better one.
    """


for command in (
    audit,
    decide,
    compare,
    train,
    evaluate,
    predict,
    export,
    serve,
    report,
    demo,
    diagnose,
    translate,
    inspect,
    objectives,
    backbones,
    reproduce,
):
    app.command()(command)
app.add_typer(runs_app, name="runs")
app.add_typer(bench_app, name="bench")
app.add_typer(taxonomy_app, name="taxonomy")
app.add_typer(data_app, name="data")
