"""Benchmarks: ours beside literal forms and other packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from labelkin.cli._show import say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.bench import Benchmark, LossTimes, ManyLabels, Row, Timing, TreeLosses

app = typer.Typer(no_args_is_help=True, help="How fast it is: ratios inside one run, medians with their spread.")
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Repeats = Annotated[int, Option(help="Calls of which the median counts.")]
Threads = Annotated[int, Option(help="Of the pass in a fresh process.")]
Trees = Annotated[list[str] | None, Argument(help="Shipped trees or files. Default: cifar100.", metavar="NAME|FILE")]
GIB, MIB = 2**30, 2**20


@app.command()
def metrics(
    samples: int = 10_000, classes: int = 1_000, repeats: Repeats = 3, threads: Threads = 2, json: Json = False
) -> None:
    """Every metric on samples x classes predictions."""
    from labelkin.bench import as_dict, missing, time_metrics

    found = time_metrics(samples=samples, classes=classes, repeats=repeats, threads=threads)
    if json:
        say_json(as_dict(found))
        return
    _say_benchmark(found)
    if missing():
        say(f"Not compared, because not installed: {', '.join(missing())}.")


@app.command()
def naa(
    samples: int = 10_000,
    classes: int = 100,
    features: int = 512,
    repeats: Repeats = 3,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """NAA distances of samples x features activations."""
    from labelkin.bench import as_dict, time_naa

    found = time_naa(samples=samples, classes=classes, features=features, repeats=repeats, threads=threads)
    if json:
        say_json(as_dict(found))
    else:
        _say_benchmark(found)


@app.command("tree-losses")
def tree_losses(
    trees: Trees = None,
    batch: int = 4096,
    repeats: Repeats = 20,
    compile: Annotated[bool, Option("--compile", help="torch.compile the losses.")] = False,
    json: Json = False,
) -> None:
    """Tree losses beside flat cross entropy, forward and backward, on a GPU where there is one."""
    from labelkin.bench import time_tree_losses
    from labelkin.bench import tree_losses_as_dict as as_dict

    found = [time_tree_losses(tree, batch=batch, repeats=repeats, compiled=compile) for tree in trees or ["cifar100"]]
    if json:
        say_json([as_dict(one) for one in found])
        return
    for one in found:
        _say_tree_losses(one)


@app.command("many-labels")
def many_labels(
    labels: int = 50_000,
    features: int = 512,
    tokens: int = 1024,
    rank: int = 100,
    optimizer: Annotated[bool, Option("--optimizer", help="With an update by Adam.")] = False,
    repeats: Repeats = 20,
    json: Json = False,
) -> None:
    """A step with the compressed label embedding beside a linear layer and cross entropy, on a GPU where there is one."""
    from labelkin.bench import many_labels_as_dict as as_dict
    from labelkin.bench import time_many_labels

    found = time_many_labels(
        labels=labels, features=features, tokens=tokens, rank=rank, optimizer=optimizer, repeats=repeats
    )
    if json:
        say_json(as_dict(found))
    else:
        _say_many_labels(found)


@app.command()
def losses(
    device: Annotated[str | None, Option(help="cpu or cuda. Default: cuda where there is a GPU.")] = None,
    dtype: Annotated[str, Option(help="float32 or bfloat16.")] = "float32",
    trees: Annotated[
        Path | None, Option(help="Folder with imagenet.csv and inat21.csv. Default: generated trees of that size.")
    ] = None,
    only: Annotated[str, Option(help="Run the cases whose names contain this text.")] = "",
    small: Annotated[bool, Option("--small", help="Use small sizes, to see that everything runs.")] = False,
    repeats: Repeats = 50,
    cpu_time: Annotated[bool, Option("--cpu-time", help="Count processor time on the CPU.")] = False,
    output: Annotated[Path | None, Option("-o", "--output", help="Write the results to this JSON file.")] = None,
    json: Json = False,
) -> None:
    """Fused losses beside flat cross entropy, forward and backward, each checked in float64 in the run that is timed."""
    from json import dumps

    from labelkin._files import write_text
    from labelkin.bench import loss_times_as_dict, time_losses

    found = time_losses(
        device=device, dtype=dtype, trees=trees, only=only, small=small, repeats=repeats, cpu_time=cpu_time
    )
    if output is not None:
        write_text(output, dumps(loss_times_as_dict(found), indent=1) + "\n")
    if json:
        say_json(loss_times_as_dict(found))
    else:
        _say_losses(found)
    if found.failures:
        raise typer.Exit(1)


@app.command("all")
def every(json: Json = False) -> None:
    """All of them at their usual sizes."""
    from labelkin.bench import as_dict, time_metrics, time_naa, time_tree_losses, tree_losses_as_dict

    against, trees = [time_metrics(), time_naa()], [time_tree_losses("cifar100")]
    if json:
        say_json([*map(as_dict, against), *map(tree_losses_as_dict, trees)])
        return
    for found in against:
        _say_benchmark(found)
        say("")
    _say_tree_losses(trees[0])


def _say_benchmark(found: Benchmark) -> None:
    sizes = ", ".join(f"{size:,} {name}" for name, size in found.sizes.items())
    on, once = found.machine, found.whole
    differences = [row.literal.difference for row in found.rows if row.literal is not None]
    say(f"{found.name}: {sizes}; CPU time on one thread, {on.cores} cores, torch {on.torch}")
    say("")
    say_table(("", "ms", "from - to", "literal", "others"), [_cells(row) for row in found.rows])
    say("")
    say(f"Median of {found.rows[0].ours.repeats}; literal and others: their time as a multiple of ours.")
    say("~: the literal form ran on that share of the samples or classes, and is extrapolated.")
    say(f"The literal forms' values differ from ours by {max(differences):.1e} at most.")
    say(
        f"Ours once in a fresh process, {once.threads} threads: {once.seconds:.2f} s ({once.cpu_seconds:.2f} s of CPU "
        f"time), peak memory {once.peak_bytes / GIB:.2f} GiB, {once.before_bytes / GIB:.2f} of it before it began."
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (row.name, f"{1e3 * row.ours.median:.2f}", _spread(row.ours), _literal(row), _peers(row))


def _spread(timing: Timing) -> str:
    return f"{1e3 * timing.fastest:.2f} - {1e3 * timing.slowest:.2f}"


def _literal(row: Row) -> str:
    if row.literal is None or row.ratio is None:
        return "-"
    part = "" if row.literal.share == 1 else f" ({100 * row.literal.share:.2g} %)"
    return f"{'~' if part else ''}{row.ratio:.3g} x{part}"


def _peers(row: Row) -> str:
    return ", ".join(f"{peer} {row.peer_ratio(peer):.3g} x" for peer in row.peers) or "-"


def _say_tree_losses(found: TreeLosses) -> None:
    on = found.machine
    how = "compiled" if found.compiled else "eager"
    say(f"tree losses: {found.tree}, {found.nodes:,} nodes, {found.classes:,} classes, batch {found.batch:,}, {how}")
    say(f"{on.device}, {on.cores} cores, {on.threads} threads, torch {on.torch}; median of {found.flat.repeats}")
    say("")
    rows = [
        (name, f"{1e6 * timing.median:.0f}", _spread(timing), f"{timing.median / found.flat.median:.3g}")
        for name, timing in {"flat cross entropy": found.flat, **found.losses}.items()
    ]
    say_table(("loss", "us", "from - to (ms)", "x flat"), rows)
    say("")
    say(f"Reading and writing the node logits once takes {1e6 * found.floor.median:.0f} us.")


def _say_losses(found: LossTimes) -> None:
    on = found.machine
    say(f"losses: {on.device}, {on.cores} cores, {on.threads} threads, torch {on.torch}; medians, forward and backward")
    say("")
    rows = [
        (
            row.case,
            f"{row.batch:,}",
            f"{1e6 * row.ours.call:.0f}",
            f"{row.ratio:.2f}",
            "-" if row.ours.replay is None else f"{1e6 * row.ours.replay:.1f}",
            "-" if row.replay_ratio is None else f"{row.replay_ratio:.2f}",
            _mebibytes(row.ours.peak_bytes),
            f"{max(row.loss_error, row.grad_error):.1e}",
        )
        for row in found.results
    ]
    say_table(("loss", "batch", "us", "x flat", "us in a graph", "x flat", "peak MiB", "error"), rows)
    for name, sentence in found.failures.items():
        say(f"Failed: {name}: {sentence[:2000]}")


def _say_many_labels(found: ManyLabels) -> None:
    on = found.machine
    say(f"many labels: {found.labels:,} labels, {found.tokens:,} x {found.features} features, rank {found.rank}")
    say(f"{on.device}, {on.cores} cores, {on.threads} threads, torch {on.torch}; median of {found.ours.timing.repeats}")
    say("")
    rows = [
        (name, f"{1e3 * step.timing.median:.2f}", _spread(step.timing), _mebibytes(step.peak_bytes))
        for name, step in (("linear and cross entropy", found.plain), ("compressed label embedding", found.ours))
    ]
    say_table(("a step", "ms", "from - to", "peak MiB"), rows)
    say("")
    memory = (
        "peak memory is counted on a GPU alone"
        if found.times_memory is None
        else f"{found.times_memory:.2f} x the memory"
    )
    say(f"{found.times_time:.3g} x the time; {memory}.")


def _mebibytes(count: int | None) -> str:
    return "-" if count is None else f"{count / MIB:,.0f}"
