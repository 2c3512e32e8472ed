"""Objectives that a script registers: trained in its process, and refused, not waited for, by others."""

from pathlib import Path

import pytest

from labelkin import OBJECTIVES, InputError, OneHot, compare


class Own(OneHot):
    """An objective that only this process knows."""


@pytest.mark.long
@pytest.mark.timeout(120)
def test_an_objective_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(OBJECTIVES, "own", Own)
    given = {"objectives": ["one-hot", "own"], "out": tmp_path, "epochs": 1}
    one_hot, own = compare("digits", **given).rows
    assert own.accuracy == one_hot.accuracy
    with pytest.raises(InputError, match=r"there is no objective 'own'.* train such runs one at a time \(--jobs 1\)"):
        compare("digits", **given, seeds=[1, 2], jobs=2)
