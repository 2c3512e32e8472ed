"""The commands `labelkin bench`: labelkin against literal implementations and other packages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin._checks import counted
from labelkin.cli._bench_tables import (
    Output,
    say_benchmark,
    say_comparison,
    say_losses,
    say_many_labels,
    say_tree_losses,
)
from labelkin.cli._show import say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="Measure the speed of training, metrics, losses and label embeddings.")
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Repeats = Annotated[int, Option(help="Number of timed calls; the median is reported.")]
Threads = Annotated[int, Option(help="CPU threads of the separate process that measures peak memory.")]
Samples = Annotated[int, Option(help="Number of samples.")]
Classes = Annotated[int, Option(help="Number of classes.")]
Features = Annotated[int, Option(help="Number of features.")]
Trees = Annotated[list[str] | None, Argument(help="Built-in trees or files. Default: cifar100.", metavar="NAME|FILE")]
Device = Annotated[str | None, Option(help="cpu or cuda. Default: cuda if there is a GPU.")]


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
    say_benchmark(result)
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
        say_benchmark(result)


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
        say_tree_losses(one)


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
    output: Output = None,
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
    say(f"{found.backbone}, {counted(found.samples, 'image')}, batch {found.batch}, {found.machine.device}, seconds")
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
        say_many_labels(result)


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
    output: Output = None,
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
        say_losses(found)
    if found.failures:
        raise typer.Exit(1)


@app.command()
def linear(
    device: Device = None,
    rows: Annotated[int, Option(help="Number of samples. Default: 8,192, or 512 on the CPU.", show_default=False)] = 0,
    features: Annotated[
        int, Option(help="Number of features. Default: 2,048, or 256 on the CPU.", show_default=False)
    ] = 0,
    classes: Annotated[
        int, Option(help="Number of classes. Default: 131,072, or 8,192 on the CPU.", show_default=False)
    ] = 0,
    dtype: Annotated[str, Option(help="float32 or bfloat16. Default: bfloat16, or float32 on the CPU.")] = "",
    kinds: Annotated[
        list[str] | None,
        Option(
            "--kind",
            help="hard, dense, scaled, grouped, ordinal, sparse or low-rank; repeat for several. Default: all.",
        ),
    ] = None,
    repeats: Repeats = 10,
    output: Output = None,
    json: Json = False,
) -> None:
    """Time the cross entropy of a linear layer in chunks of samples, forward and backward, for each kind of target."""
    from labelkin.bench import time_linear

    found = time_linear(
        device=device, rows=rows, features=features, classes=classes, dtype=dtype, kinds=kinds, repeats=repeats
    )
    say_comparison(found, output, json)


@app.command()
def loading(
    images: Annotated[int, Option(help="Number of images.")] = 1000,
    size: Annotated[int, Option(help="Height and width of the batches in pixels.")] = 224,
    batch: Annotated[int, Option(help="Batch size.")] = 64,
    workers: Annotated[
        list[int] | None, Option(help="Worker processes; repeat for several numbers. Default: 0 and 2.")
    ] = None,
    repeats: Repeats = 3,
    output: Output = None,
    json: Json = False,
) -> None:
    """Time reading, resizing and augmenting JPEG files on one thread, compared with torchvision if installed."""
    from labelkin.bench import time_loading

    found = time_loading(images=images, size=size, batch=batch, workers=workers or (0, 2), repeats=repeats)
    say_comparison(found, output, json)


@app.command()
def analysis(
    samples: Samples = 10_000,
    classes: Classes = 200,
    features: Features = 128,
    repeats: Repeats = 5,
    output: Output = None,
    json: Json = False,
) -> None:
    """Time the analysis of confusions and label vectors on one thread, compared with other packages if installed."""
    from labelkin.bench import time_analysis

    found = time_analysis(samples=samples, classes=classes, features=features, repeats=repeats)
    say_comparison(found, output, json)


@app.command("all")
def every(json: Json = False) -> None:
    """Time metrics, NAA and tree losses at their default sizes."""
    from labelkin.bench import as_dict, time_metrics, time_naa, time_tree_losses, tree_losses_as_dict

    against, trees = [time_metrics(), time_naa()], [time_tree_losses("cifar100")]
    if json:
        say_json([*map(as_dict, against), *map(tree_losses_as_dict, trees)])
        return
    for result in against:
        say_benchmark(result)
        say("")
    say_tree_losses(trees[0])


@app.command()
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
    """Time many small networks as one batched model (--fleet) against training them one by one, on a GPU if available."""
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
        f"{found.begun:.1f} s. Convolutions: {found.way}."
    )
    if found.note:
        say(f"Not captured: {found.note}.")
