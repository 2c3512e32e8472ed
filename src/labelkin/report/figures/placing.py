"""Names beside points, where there is room for them."""

from collections.abc import Sequence
from typing import NamedTuple

# Of a small figure, as shares of the extent of its points: across, a third of the plot is left free for names.
LETTER, LINE = 0.032, 0.05
DOT = (0.04, 0.025)  # half a point
APART = (0.05, 0.03)  # from a point's middle to its name
SIDES = ("top center", "bottom center", "middle right", "middle left")


class _Box(NamedTuple):
    left: float
    right: float
    low: float
    high: float

    def meets(self, other: "_Box") -> bool:
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high


def name_positions(
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    *,
    others: Sequence[tuple[float, float]] = (),
    extent: Sequence[tuple[float, float]] = (),
    sides: Sequence[str] = SIDES,
) -> list[str | None]:
    """For each point the side on which its name meets no other name or point: a plotly `textposition`, or None.

    Earlier points choose first among `sides`; `others` are points that have no name, `extent` where else the axes reach.
    Larger y is further up.
    """
    known = len(points) + len(others)
    everything = [*points, *others, *extent]
    xs, ys = (_shares(list(along))[:known] for along in zip(*everything, strict=True)) if everything else ([], [])
    taken = [_Box(x - DOT[0], x + DOT[0], y - DOT[1], y + DOT[1]) for x, y in zip(xs, ys, strict=True)]
    found: list[str | None] = []
    for place, (x, y, name) in enumerate(zip(xs, ys, names, strict=False)):
        around = _candidates(x, y, LETTER * len(name))
        for position in sides:
            box = around[position]
            rest = taken[:place] + taken[place + 1 :]
            if box.left >= -0.3 and box.right <= 1.3 and not any(box.meets(other) for other in rest):
                taken.append(box)
                found.append(position)
                break
        else:
            found.append(None)
    return found


def _candidates(x: float, y: float, width: float) -> dict[str, _Box]:
    half = width / 2
    return {
        "top center": _Box(x - half, x + half, y + APART[1], y + APART[1] + LINE),
        "bottom center": _Box(x - half, x + half, y - APART[1] - LINE, y - APART[1]),
        "middle right": _Box(x + APART[0], x + APART[0] + width, y - LINE / 2, y + LINE / 2),
        "middle left": _Box(x - APART[0] - width, x - APART[0], y - LINE / 2, y + LINE / 2),
    }


def _shares(values: Sequence[float]) -> list[float]:
    """From 0 to 1."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return [(value - low) / ((high - low) or 1.0) for value in values]
