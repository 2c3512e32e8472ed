"""Tables of costs: read them from files and arrange them in the order of the classes."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, counted, listed, near, plain_names, with_suggestions
from labelkin._files import separator_of
from labelkin._numpy_files import load_numpy
from labelkin.data import CLASS_NAME_KEYS, with_point
from labelkin.relations import check_not_negative, read_numbers, read_square

MATRIX, ACTIONS = "costs", "actions"


class CostTable(NamedTuple):
    """Costs of decisions; rows are true classes, columns answers.

    Attributes:
        names: The classes; None if the matrix has the order of the predictions' classes.
        costs: (K, A) float64; the first K columns are the classes.
        actions: The names of the other columns, which are answers but no classes.
    """

    names: tuple[str, ...] | None
    costs: Tensor
    actions: tuple[str, ...] = ()


def read_costs(source: Any) -> CostTable:
    """Read costs. A column without a row of its name is an action.

    Args:
        source: A .csv file with answers in its first row and true classes in its first column; an .npz file with the arrays
            `costs`, `classes` and, for the columns after the classes, `actions`; a pandas DataFrame with true classes as index
            and answers as columns; a mapping `{true class: {answer: cost}}`, in which right answers cost 0 by default; or a
            square matrix in the order of the predictions' classes.
    """
    if not isinstance(source, (str, os.PathLike)):
        return _given(source)
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
    """Read costs as `read_costs` does, and return them as a (K, K) tensor in the order of these classes, without actions."""
    table = costs_in_order(read_costs(source), classes)
    if table.actions:
        raise InputError(
            f"costs: expected a column for each class alone, got {listed(table.actions, 3)} as well; training and its metrics "
            "have no place for answers that are not classes, so leave them out here, and give them to labelkin audit, decide, "
            "predict, serve or export."
        )
    return table.costs


def costs_in_order(table: CostTable, classes: Sequence[str]) -> CostTable:
    """Return the costs of exactly these classes, in their order; actions stay last."""
    if table.names is None:
        return CostTable(tuple(classes), read_square("costs", table.costs, len(classes)))
    position = {name: k for k, name in enumerate(table.names)}
    missing, known = [name for name in classes if name not in position], set(classes)
    if missing:
        only = ", which is only a column" if missing[0] in table.actions else ""
        classes_without = f"{'class' if len(missing) == 1 else 'classes'} {with_suggestions(missing, table.names)}"
        raise InputError(f"costs: no row for the {classes_without}{only}; add one for every class.")
    extra = [name for name in table.names if name not in known]
    if extra:
        raise InputError(
            f"costs: expected only the {len(classes)} classes of the predictions, got {with_suggestions(extra, classes)}; "
            "remove these rows and columns."
        )
    order = [position[name] for name in classes]
    columns = [*order, *range(len(order), table.costs.shape[1])]
    return CostTable(tuple(classes), table.costs[order][:, columns], table.actions)


def _given(source: Any) -> CostTable:
    """Read a mapping, a DataFrame or a matrix."""
    if isinstance(source, Mapping):
        return _from_mapping(source)
    names = [plain_names(getattr(source, axis, None)) for axis in ("index", "columns")]
    if all(isinstance(axis, list) for axis in names) and names != [list(range(len(axis))) for axis in names]:
        rows, columns = ([str(name) for name in axis] for axis in names)
        return _arranged("costs", rows, columns, _numbers_of(source))
    costs = read_numbers("costs", _numbers_of(source) if all(isinstance(axis, list) for axis in names) else source)
    if costs.ndim == 2 and 2 <= len(costs) < costs.shape[1]:
        raise InputError(
            f"costs: expected names for the columns after the {len(costs)} classes, which are answers but no classes, got a "
            f"matrix of shape {tuple(costs.shape)}; pass a pandas DataFrame, a mapping {{true class: {{answer: cost}}}} or a "
            "file."
        )
    return CostTable(None, _checked("costs", read_square("costs", costs)))


def _numbers_of(frame: Any) -> Any:
    """Return the numbers of a DataFrame, also where columns of several dtypes or with missing values become objects."""
    numbers = frame.to_numpy()
    if numbers.dtype != object:
        return numbers
    try:
        return numbers.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"costs: expected a DataFrame of numbers, got a cell that is none ({error}).") from None


def _from_mapping(source: Mapping[Any, Any]) -> CostTable:
    rows = {str(true): row for true, row in source.items()}
    odd = next((true for true, row in rows.items() if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise InputError(
            f"costs: expected a mapping {{true class: {{answer: cost}}}}, got {rows[odd]!r:.60} for {odd!r}."
        )
    for keys in (source, *rows.values()):
        check_names("costs: names", [str(name) for name in keys], least=0)
    by_row = {true: {true: 0.0} | {str(answer): cost for answer, cost in row.items()} for true, row in rows.items()}
    columns = list(dict.fromkeys([*rows, *(answer for row in by_row.values() for answer in row)]))
    for true, row in by_row.items():
        if missing := [answer for answer in columns if answer not in row]:
            raise InputError(
                f"costs: no cost of the answer {with_suggestions(missing, list(row))} for the true class {true!r}; add it."
            )
    return _arranged("costs", list(rows), columns, [[row[answer] for answer in columns] for row in by_row.values()])


def _arranged(source: str, rows: Sequence[str], columns: Sequence[str], numbers: Any) -> CostTable:
    """Return a table in the order of its columns, the classes first; columns without a row are actions."""
    check_names("costs: answers", columns, least=2)
    check_names("costs: classes", rows, least=2)
    place = {name: k for k, name in enumerate(rows)}
    classes, actions = [name for name in columns if name in place], [name for name in columns if name not in place]
    missing = [name for name in rows if name not in set(classes)]
    if missing:
        raise InputError(
            f"{source}: no column for the class {with_suggestions(missing, actions)}; rows are true classes and columns "
            "answers, so every row needs a column of its name. Other columns are answers that are not classes."
        )
    order = {name: k for k, name in enumerate(columns)}
    costs = read_numbers(source, numbers)[[place[name] for name in classes]]
    for at, answer in (costs < 0).nonzero().tolist():
        raise InputError(
            f"{source}: expected numbers that are not negative, got {costs[at, answer]:g} for the true class {classes[at]!r} "
            f"and the answer {columns[answer]!r}."
        )
    return CostTable(
        tuple(classes), _checked(source, costs[:, [order[name] for name in (*classes, *actions)]]), tuple(actions)
    )


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
            f"costs: {path} has {counted(len(heading), 'name')} in its header, but {counted(len(rows[odd]) - 1, 'number')} in "
            f"the row {rows[odd][0]!r}."
        )
    numbers = [[_cost(path, row[0], *pair) for pair in zip(heading, row[1:], strict=True)] for row in rows]
    return _arranged(f"costs: {path}", [row[0] for row in rows], heading, numbers)


def _cost(path: Path, true: str, answer: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(
            f"costs: {path}: expected a number for the true class {true!r} and the answer {answer!r}, got {cell!r}."
        ) from None


def _read_npz(path: Path) -> CostTable:
    arrays = load_numpy(path)
    names = (
        next((arrays[key] for key in CLASS_NAME_KEYS if key in arrays), None) if isinstance(arrays, Mapping) else None
    )
    if names is None or not isinstance(arrays, Mapping) or MATRIX not in arrays:
        raise InputError(
            f"costs: {path} must have the arrays 'costs' (K, A) and 'classes' (K names), and with further columns 'actions' "
            "(their names)."
        )
    classes, actions = _texts(names), _texts(arrays.get(ACTIONS, []))
    numbers = read_numbers(f"costs: {path}", arrays[MATRIX])
    if numbers.shape != (len(classes), len(classes) + len(actions)):
        raise InputError(
            f"costs: {path} has {counted(len(classes), 'class', 'classes')} and {counted(len(actions), 'name')} of actions, "
            f"but costs of shape {tuple(numbers.shape)}; expected a row for each class, and a column for each class and action."
        )
    check_names("costs: classes", classes, least=2)
    return _arranged(f"costs: {path}", classes, [*classes, *actions], numbers)


def _texts(names: Any) -> list[str]:
    listed_names = np.asarray(names).reshape(-1).tolist()
    return [name.decode() if isinstance(name, bytes) else str(name) for name in listed_names]


def _checked(argument: str, costs: Tensor) -> Tensor:
    """Return costs (K, A) in float64; refuse negative ones, and those of classes that look like similarities."""
    costs = costs.double().cpu()
    check_not_negative(argument, costs)
    of_classes = costs[:, : len(costs)]
    right = of_classes.diagonal()
    wrong = of_classes.masked_fill(torch.eye(len(costs), dtype=torch.bool), -torch.inf).max(1).values
    if (right > wrong).all():
        raise InputError(
            f"{argument}: expected that some mistake costs more than the right answer, got a table in which the right answer "
            f"always costs most ({right[0]:g} in row 1, and {wrong[0]:g} for a mistake at most); write costs, not similarities,"
            " usually with 0 on the diagonal."
        )
    if not (of_classes - right[:, None]).any():
        raise InputError(f"{argument}: expected that some mistake costs more than the right answer, got none.")
    return costs
