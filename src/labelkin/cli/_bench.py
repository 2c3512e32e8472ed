"""The commands `labelkin bench`: labelkin against literal implementations and other packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from labelkin.cli._bench_fleet import fleet
from labelkin.cli._show import say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.bench import Benchmark, LossTimes, ManyLabels, Row, Timing, TreeLosses

app = typer.Typer(no_args_is_help=True, help="Measure the speed of training, metrics, losses and label embeddings.")
app.command("fleet")(fleet)
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Repeats = Annotated[int, Option(help="Number of timed calls; the median is reported.")]
Threads = Annotated[int, Option(help="CPU threads of the separate process that measures peak memory.")]
Samples = Annotated[int, Option(help="Number of samples.")]
Classes = Annotated[int, Option(help="Number of classes.")]
Features = Annotated[int, Option(help="Number of features.")]
Trees = Annotated[list[str] | None, Argument(help="Built-in trees or files. Default: cifar100.", metavar="NAME|FILE")]
GIB, MIB = 2**30, 2**20


@app.command()
def metrics(
    samples: Samples = 10_000, classes: Classes = 1_000, repeats: Repeats = 3, threads: Threads = 2, json: Json = False
) -> None:
    """Time every metric on random predictions."""
    from labelkin.bench import as_dict, missing, time_metrics

    result = time_metrics(samples=samples, classes=classes, repeats=repeats, threads=threads)
    if json:
        say_json(as_dict(result))
        return
    _say_benchmark(result)
    if missing():
        say(f"Not compared, because they are not installed: {', '.join(missing())}.")


@app.command()
def naa(
    samples: Samples = 10_000,
    classes: Classes = 100,
    features: Features = 512,
    repeats: Repeats = 3,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Time the distances of neurodynamical analysis (NAA) on random activations."""
    from labelkin.bench import as_dict, time_naa

    result = time_naa(samples=samples, classes=classes, features=features, repeats=repeats, threads=threads)
    if json:
        say_json(as_dict(result))
    else:
        _say_benchmark(result)


@app.command("tree-losses")
def tree_losses(
    trees: Trees = None,
    batch: Annotated[int, Option(help="Batch size.")] = 4096,
    repeats: Repeats = 20,
    compile: Annotated[bool, Option("--compile", help="Compile the losses with torch.compile.")] = False,
    json: Json = False,
) -> None:
    """Time tree losses against flat cross entropy, forward and backward, on a GPU if available."""
    from labelkin.bench import time_tree_losses
    from labelkin.bench import tree_losses_as_dict as as_dict

    result = [time_tree_losses(tree, batch=batch, repeats=repeats, compiled=compile) for tree in trees or ["cifar100"]]
    if json:
        say_json([as_dict(one) for one in result])
        return
    for one in result:
        _say_tree_losses(one)


@app.command()
def training(
    objectives: Annotated[
        list[str] | None, Argument(help="Objectives. Default: one-hot and label-embedding.", metavar="OBJECTIVE")
    ] = None,
    backbone: Annotated[str, Option(help="Backbone.")] = "resnet-18",
    samples: Samples = 50_000,
    batch: Annotated[int, Option(help="Batch size.")] = 128,
    epochs: Annotated[int, Option(help="Number of epochs; the first one is not timed.")] = 4,
    size: Annotated[int, Option(help="Height and width of the images in pixels.")] = 32,
    ways: Annotated[
        list[str] | None,
        Option("--way", help="plain, captured, compiled, or 'compiled and captured'. Default: plain and captured."),
    ] = None,
    precision: Annotated[str, Option(help="Floating-point precision.")] = "bf16-mixed",
    output: Annotated[Path | None, Option("-o", "--output", help="Write the results to this JSON file.")] = None,
    json: Json = False,
) -> None:
    """Time training epochs on random images with the classes of CIFAR-100, on a GPU if available."""
    from json import dumps

    from labelkin._checks import check_choice
    from labelkin._files import write_text
    from labelkin.bench import TRAINING_WAYS, time_training, training_times_as_dict

    for way in ways or ():
        check_choice("way", way, tuple(TRAINING_WAYS))
    found = time_training(
        objectives or ["one-hot", "label-embedding"],
        backbone=backbone,
        samples=samples,
        batch=batch,
        epochs=epochs,
        size=size,
        ways=ways,
        precision=precision,
    )
    if output is not None:
        write_text(output, dumps(training_times_as_dict(found), indent=1) + "\n")
    if json:
        say_json(training_times_as_dict(found))
        return
    say(f"{found.backbone}, {found.samples:,} images, batch {found.batch}, {found.machine.device}, seconds")
    rows = [
        (row.objective, row.way, f"{row.epoch:.2f}", f"{row.end:.2f}", f"{row.first_step:.1f}", f"{row.loss:.4f}")
        for row in found.rows
    ]
    say_table(("objective", "way", "epoch", "evaluation", "first step", "last loss"), rows)
    for note in dict.fromkeys(row.note for row in found.rows if row.note):
        say(f"Not captured: {note}.")


@app.command("many-labels")
def many_labels(
    labels: Annotated[int, Option(help="Number of labels.")] = 50_000,
    features: Features = 512,
    tokens: Annotated[int, Option(help="Number of tokens in a batch.")] = 1024,
    rank: Annotated[int, Option(help="Rank of the compressed embedding.")] = 100,
    optimizer: Annotated[bool, Option("--optimizer", help="Include an Adam update.")] = False,
    repeats: Repeats = 20,
    json: Json = False,
) -> None:
    """Time the compressed label embedding against a linear layer with cross entropy, on a GPU if available."""
    from labelkin.bench import many_labels_as_dict as as_dict
    from labelkin.bench import time_many_labels

    result = time_many_labels(
        labels=labels, features=features, tokens=tokens, rank=rank, optimizer=optimizer, repeats=repeats
    )
    if json:
        say_json(as_dict(result))
    else:
        _say_many_labels(result)


@app.command()
def losses(
    device: Annotated[str | None, Option(help="cpu or cuda. Default: cuda if there is a GPU.")] = None,
    dtype: Annotated[str, Option(help="float32 or bfloat16.")] = "float32",
    trees: Annotated[
        Path | None, Option(help="Folder with imagenet.csv and inat21.csv. Default: generated trees of that size.")
    ] = None,
    only: Annotated[str, Option(help="Run the cases whose names contain this text.")] = "",
    small: Annotated[bool, Option("--small", help="Use small sizes, for a quick check.")] = False,
    repeats: Repeats = 50,
    cpu_time: Annotated[bool, Option("--cpu-time", help="Count processor time on the CPU.")] = False,
    output: Annotated[Path | None, Option("-o", "--output", help="Write the results to this JSON file.")] = None,
    json: Json = False,
) -> None:
    """Time fused losses against flat cross entropy, forward and backward, and check each one in float64."""
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
    """Time metrics, NAA and tree losses at their default sizes."""
    from labelkin.bench import as_dict, time_metrics, time_naa, time_tree_losses, tree_losses_as_dict

    against, trees = [time_metrics(), time_naa()], [time_tree_losses("cifar100")]
    if json:
        say_json([*map(as_dict, against), *map(tree_losses_as_dict, trees)])
        return
    for result in against:
        _say_benchmark(result)
        say("")
    _say_tree_losses(trees[0])


def _say_benchmark(result: Benchmark) -> None:
    sizes = ", ".join(f"{size:,} {name}" for name, size in result.sizes.items())
    on, once = result.machine, result.whole
    differences = [row.literal.difference for row in result.rows if row.literal is not None]
    say(f"{result.name}: {sizes}; CPU time on one thread, {on.cores} cores, torch {on.torch}")
    say("")
    say_table(("", "ms", "range (ms)", "literal", "others"), [_cells(row) for row in result.rows])
    say("")
    say(f"Median of {result.rows[0].ours.repeats} calls. Literal and others: their time divided by labelkin's.")
    say("~: the literal form ran on the given share of the samples or classes; its time is extrapolated.")
    say(f"Values of the literal forms differ from labelkin's by at most {max(differences):.1e}.")
    say(
        f"One pass in a new process with {once.threads} threads: {once.seconds:.2f} s ({once.cpu_seconds:.2f} s of CPU "
        f"time), peak memory {once.peak_bytes / GIB:.2f} GiB, of which {once.before_bytes / GIB:.2f} GiB before the pass."
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


def _say_tree_losses(result: TreeLosses) -> None:
    on = result.machine
    how = "compiled" if result.compiled else "eager"
    say(
        f"tree losses: {result.tree}, {result.nodes:,} nodes, {result.classes:,} classes, batch {result.batch:,}, {how}"
    )
    say(f"{on.device}, {on.cores} cores, {on.threads} threads, torch {on.torch}; median of {result.flat.repeats}")
    say("")
    rows = [
        (name, f"{1e6 * timing.median:.0f}", _spread(timing), f"{timing.median / result.flat.median:.3g}")
        for name, timing in {"flat cross entropy": result.flat, **result.losses}.items()
    ]
    say_table(("loss", "us", "range (ms)", "x flat"), rows)
    say("")
    say(f"Reading and writing the node logits once takes {1e6 * result.floor.median:.0f} us.")


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


def _say_many_labels(result: ManyLabels) -> None:
    on = result.machine
    say(f"many labels: {result.labels:,} labels, {result.tokens:,} x {result.features} features, rank {result.rank}")
    say(
        f"{on.device}, {on.cores} cores, {on.threads} threads, torch {on.torch}; median of {result.ours.timing.repeats}"
    )
    say("")
    rows = [
        (name, f"{1e3 * step.timing.median:.2f}", _spread(step.timing), _mebibytes(step.peak_bytes))
        for name, step in (("linear and cross entropy", result.plain), ("compressed label embedding", result.ours))
    ]
    say_table(("step", "ms", "range (ms)", "peak MiB"), rows)
    say("")
    memory = (
        "peak memory is measured only on a GPU"
        if result.times_memory is None
        else f"{result.times_memory:.2f} x the memory"
    )
    say(f"{result.times_time:.3g} x the time; {memory}.")


def _mebibytes(count: int | None) -> str:
    return "-" if count is None else f"{count / MIB:,.0f}"
