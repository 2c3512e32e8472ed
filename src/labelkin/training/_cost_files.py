"""Cost matrices: read them from files and arrange them in the order of the classes."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, counted, listed, near, with_suggestions
from labelkin._files import separator_of
from labelkin._numpy_files import load_numpy
from labelkin.data import CLASS_NAME_KEYS, with_point
from labelkin.relations import check_not_negative, read_square

MATRIX = "costs"


class CostTable(NamedTuple):
    """Costs of decisions; rows are true classes, columns decisions.

    Attributes:
        names: The classes; None if the matrix has the order of the predictions' classes.
        costs: (K, K) float64.
    """

    names: tuple[str, ...] | None
    costs: Tensor


def read_costs(source: Any) -> CostTable:
    """Read costs.

    Args:
        source: A .csv file with class names in its first row and column, an .npz file with the arrays `costs` and `classes`,
            or a matrix.
    """
    if not isinstance(source, (str, os.PathLike)):
        return CostTable(None, _checked("costs", source))
    path = Path(source)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise InputError(f"costs: expected a .csv or .npz file, got {str(path)!r}.{near(path.suffix, readers)}")
    if not path.is_file():
        raise InputError(f"costs: there is no file {str(path)!r}.")
    return readers[path.suffix.lower()](path)


def has_names(path: Path) -> bool:
    """Return whether a file states the class of each row: an .npz file, or a .csv file that begins with a header."""
    if path.suffix.lower() == ".npz":
        return True
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    first = next(csv.reader([header], delimiter=separator_of(header)), [])
    try:
        return not [float(cell) for cell in first]
    except ValueError:
        return True


def costs_for(source: Any, classes: Sequence[str]) -> Tensor:
    """Read costs as `read_costs` does, and return them as a (K, K) tensor in the order of these classes."""
    return costs_in_order(read_costs(source), classes)


def costs_in_order(table: CostTable, classes: Sequence[str]) -> Tensor:
    """Return the costs (K, K) of exactly these classes, in their order."""
    if table.names is None:
        return read_square("costs", table.costs, len(classes))
    position = {name: k for k, name in enumerate(table.names)}
    missing, known = [name for name in classes if name not in position], set(classes)
    if missing:
        raise InputError(
            f"costs: no row for the class {with_suggestions(missing, table.names)}; add one for every class."
        )
    extra = [name for name in table.names if name not in known]
    if extra:
        raise InputError(
            f"costs: expected only the {len(classes)} classes of the predictions, got {with_suggestions(extra, classes)}; "
            "remove these rows and columns."
        )
    order = torch.tensor([position[name] for name in classes])
    return table.costs[order][:, order]


def _read_csv(path: Path) -> CostTable:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            mark = separator_of(file.readline())
            file.seek(0)
            lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=mark) if line]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"costs: {path} is not a readable UTF-8 CSV file ({error}).") from error
    if len(lines) < 2:
        raise InputError(f"costs: {path} is empty; expected a header of class names and one row per class.")
    if mark == ";":
        lines[1:] = [[row[0], *map(with_point, row[1:])] for row in lines[1:]]
    heading, rows = lines[0][1:], lines[1:]
    odd = next((i for i, row in enumerate(rows) if len(row) != len(heading) + 1), None)
    if odd is not None:
        raise InputError(
            f"costs: {path} has {len(heading)} classes in its header, but {counted(len(rows[odd]) - 1, 'number')} in the row "
            f"{rows[odd][0]!r}."
        )
    check_names("costs: classes", heading, least=2)
    row_by_name = {row[0]: row[1:] for row in rows}
    if sorted(row[0] for row in rows) != sorted(heading):
        raise InputError(
            f"costs: {path} has the rows {listed([row[0] for row in rows], 3)} and the columns {listed(heading, 3)}; expected "
            "the same classes in both (rows: true class, columns: decision)."
        )
    try:
        numbers = [[float(cell) for cell in row_by_name[name]] for name in heading]
    except ValueError as error:
        raise InputError(f"costs: {path} has a cell that is not a number ({error}).") from error
    return CostTable(tuple(heading), _checked(f"costs: {path}", numbers))


def _read_npz(path: Path) -> CostTable:
    arrays = load_numpy(path)
    names = (
        next((arrays[key] for key in CLASS_NAME_KEYS if key in arrays), None) if isinstance(arrays, Mapping) else None
    )
    if names is None or not isinstance(arrays, Mapping) or MATRIX not in arrays:
        raise InputError(f"costs: {path} must have the arrays 'costs' (K, K) and 'classes' (K names).")
    texts = tuple(name.decode() if isinstance(name, bytes) else str(name) for name in names.reshape(-1).tolist())
    check_names("costs: classes", texts, least=2)
    return CostTable(texts, read_square("costs", _checked(f"costs: {path}", arrays[MATRIX]), len(texts)))


def _checked(argument: str, values: Any) -> Tensor:
    costs = read_square(argument, values).double().cpu()
    check_not_negative(argument, costs)
    right = costs.diagonal()
    wrong = costs.masked_fill(torch.eye(len(costs), dtype=torch.bool), -torch.inf).max(1).values
    if (right > wrong).all():
        raise InputError(
            f"{argument}: expected that some mistake costs more than the right answer, got a table in which the right answer "
            f"always costs most ({right[0]:g} in row 1, and {wrong[0]:g} for a mistake at most); write costs, not similarities,"
            " usually with 0 on the diagonal."
        )
    if not (costs - right[:, None]).any():
        raise InputError(f"{argument}: expected that some mistake costs more than the right answer, got none.")
    return costs
