"""Print the results of benchmarks as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from labelkin._checks import counted
from labelkin._files import check_replaceable
from labelkin.cli._show import say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.bench import Benchmark, Comparison, LossTimes, ManyLabels, Row, Timing, TreeLosses

GIB, MIB = 2**30, 2**20


def _check_output(output: Path | None) -> Path | None:
    """Refuse, before a benchmark begins, to write over a file that no benchmark wrote."""
    if output is not None:
        check_replaceable(output, by="labelkin bench", is_ours=lambda start: b'\n "machine": {' in start)
    return output


Output = Annotated[
    Path | None, Option("-o", "--output", help="Write the results to this JSON file.", callback=_check_output)
]


def say_benchmark(result: Benchmark) -> None:
    sizes = ", ".join(f"{size:,} {name}" for name, size in result.sizes.items())
    on, once = result.machine, result.whole
    differences = [row.literal.difference for row in result.rows if row.literal is not None]
    say(f"{result.name}: {sizes}; CPU time on one thread, {counted(on.cores, 'core')}, torch {on.torch}")
    say("")
    say_table(("", "ms", "range (ms)", "literal", "others"), [_cells(row) for row in result.rows])
    say("")
    say(
        f"Median of {counted(result.rows[0].ours.repeats, 'call')}. Literal and others: their time divided by labelkin's."
    )
    say("~: the literal form ran on the given share of the samples or classes; its time is extrapolated.")
    say(f"Values of the literal forms differ from labelkin's by at most {max(differences):.1e}.")
    say(
        f"One pass in a new process with {counted(once.threads, 'thread')}: {once.seconds:.2f} s "
        f"({once.cpu_seconds:.2f} s of CPU "
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


def say_tree_losses(result: TreeLosses) -> None:
    on = result.machine
    how = "compiled" if result.compiled else "eager"
    say(
        f"tree losses: {result.tree}, {result.nodes:,} nodes, {result.classes:,} classes, batch {result.batch:,}, {how}"
    )
    say(
        f"{on.device}, {counted(on.cores, 'core')}, {counted(on.threads, 'thread')}, torch {on.torch}; median "
        f"of {result.flat.repeats}"
    )
    say("")
    rows = [
        (name, f"{1e6 * timing.median:.0f}", _spread(timing), f"{timing.median / result.flat.median:.3g}")
        for name, timing in {"flat cross entropy": result.flat, **result.losses}.items()
    ]
    say_table(("loss", "us", "range (ms)", "x flat"), rows)
    say("")
    say(f"Reading and writing the node logits once takes {1e6 * result.floor.median:.0f} us.")


def say_comparison(found: Comparison, output: Path | None, json: bool) -> None:
    from json import dumps

    from labelkin._files import write_text
    from labelkin.bench import comparison_as_dict

    if output is not None:
        write_text(output, dumps(comparison_as_dict(found), indent=1) + "\n")
    if json:
        say_json(comparison_as_dict(found))
        return
    on = found.machine
    say(
        f"{found.name}: {on.device}, {counted(on.cores, 'core')}, {counted(on.threads, 'thread')}, torch {on.torch}; medians"
    )
    say(", ".join(f"{size:,} {name}" for name, size in found.rows[0].sizes.items()))
    say("")
    peers = list(dict.fromkeys(peer for row in found.rows for peer in row.peers))
    rows = []
    for row in found.rows:
        against = [_ratios(row.ratio(peer), row.memory_ratio(peer)) if peer in row.peers else "-" for peer in peers]
        if row.units is not None:
            last = f"{row.units / row.ours.timing.median:,.0f}"
        else:
            last = "-" if row.error is None else f"{row.error:.1e}"
        milliseconds = f"{1e3 * row.ours.timing.median:.2f}"
        rows.append((row.case, milliseconds, _spread(row.ours.timing), _mebibytes(row.ours.peak_bytes), *against, last))
    what = "error" if found.rows[0].units is None else "per second"
    heads = ("case", "ms", "range (ms)", "peak MiB", *(f"x {peer}" for peer in peers), what)
    say_table(heads, rows)
    say("")
    if peers:
        say(
            "x: labelkin's time divided by the peer's, and after the comma its peak memory; below 1, labelkin needs less."
        )
    for one in found.growth:
        steps = ", ".join(f"{size:,}: {1e3 * taken:.2f} ms" for size, taken in zip(one.sizes, one.seconds, strict=True))
        say(f"Growth of {one.case} over {one.over}: exponent {one.exponent:.2f} ({steps}).")
    for note in found.notes:
        say(f"Not compared: {note}.")


def _ratios(of_time: float, of_memory: float | None) -> str:
    return f"{of_time:.2f}" if of_memory is None else f"{of_time:.2f}, {of_memory:.2f}"


def say_losses(found: LossTimes) -> None:
    on = found.machine
    say(
        f"losses: {on.device}, {counted(on.cores, 'core')}, {counted(on.threads, 'thread')}, torch {on.torch}; "
        f"medians, forward and backward"
    )
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


def say_many_labels(result: ManyLabels) -> None:
    on = result.machine
    say(
        f"many labels: {counted(result.labels, 'label')}, {result.tokens:,} x "
        f"{counted(result.features, 'feature')}, rank {result.rank}"
    )
    say(
        f"{on.device}, {counted(on.cores, 'core')}, {counted(on.threads, 'thread')}, torch {on.torch}; median "
        f"of {result.ours.timing.repeats}"
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
