"""The app and its commands, one file a group."""

from typing import Annotated

import typer

from labelkin._version import __version__
from labelkin.cli import (
    _audit as audit,
)
from labelkin.cli import (
    _bench as bench,
)
from labelkin.cli import (
    _compare as compare,
)
from labelkin.cli import (
    _lists as data,
)
from labelkin.cli import (
    _lists as objectives,
)
from labelkin.cli import (
    _report as report,
)
from labelkin.cli import (
    _report as reproduce,
)
from labelkin.cli import (
    _run as diagnose,
)
from labelkin.cli import (
    _run as run,
)
from labelkin.cli import (
    _run as translate,
)
from labelkin.cli import (
    _runs as runs,
)
from labelkin.cli import (
    _taxonomy as taxonomy,
)
from labelkin.cli import (
    _train as train,
)
from labelkin.cli._errors import ErrorGroup as PlainSpoken

app = typer.Typer(cls=PlainSpoken, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"labelkin {__version__}")
        raise typer.Exit


@app.callback()
def labelkin(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train classifiers that know which classes are kin, so that when they miss, they miss close."""


app.command()(compare.compare)
app.command()(compare.demo)
app.command()(train.train)
app.command()(run.evaluate)
app.command()(run.predict)
app.command()(run.export)
app.command()(audit.audit)
app.command()(diagnose.diagnose)
app.command()(translate.translate)
app.command()(translate.inspect)
app.command("objectives")(objectives.objectives)
app.command()(report.report)
app.command()(reproduce.reproduce)
app.add_typer(runs.app, name="runs")
app.add_typer(bench.app, name="bench")
app.add_typer(taxonomy.app, name="taxonomy")
app.add_typer(data.app, name="data")
