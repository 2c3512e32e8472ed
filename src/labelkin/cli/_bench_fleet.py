"""The command `labelkin bench fleet`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from labelkin._checks import counted
from labelkin.cli._bench_tables import Output
from labelkin.cli._show import say, say_json, say_table


def fleet(
    objective: Annotated[str, Argument(help="Objective.", metavar="OBJECTIVE")] = "one-hot",
    members: Annotated[int, Option(help="Number of networks.")] = 36,
    backbone: Annotated[str, Option(help="Backbone.")] = "3-layer-1",
    samples: Annotated[int, Option(help="Number of training images.")] = 60_000,
    batch: Annotated[int, Option(help="Batch size of each network.")] = 128,
    epochs: Annotated[int, Option(help="Number of epochs; the first one is not timed.")] = 3,
    size: Annotated[int, Option(help="Height and width of the images in pixels.")] = 28,
    output: Output = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time many small networks as one batched model (--fleet) against one after another, on a GPU if available."""
    from json import dumps

    from labelkin._files import write_text
    from labelkin.bench import fleet_times_as_dict, time_fleet

    found = time_fleet(
        objective, members=members, backbone=backbone, samples=samples, batch=batch, epochs=epochs, size=size
    )
    if output is not None:
        write_text(output, dumps(fleet_times_as_dict(found), indent=1) + "\n")
    if json:
        say_json(fleet_times_as_dict(found))
        return
    say(
        f"{found.members} x {found.backbone}, {found.objective}, {counted(found.samples, 'image')}, batch {found.batch}, "
        f"{found.machine.device}, seconds per epoch"
    )
    rows = [
        ("one alone", f"{found.alone:.3f}", f"{found.alone_end:.3f}"),
        (f"fleet of {found.members}", f"{found.fleet:.3f}", f"{found.fleet_end:.3f}"),
    ]
    say_table(("", "steps", "evaluation"), rows)
    say(
        f"The fleet has {found.throughput:.2f} x the throughput of one after another, {found.step_throughput:.2f} x without "
        f"evaluation. The losses of the first steps differ by at most {found.loss_difference:.1e}; the first one took "
        f"{found.begun:.1f} s."
    )
    if found.note:
        say(f"Not captured: {found.note}.")
