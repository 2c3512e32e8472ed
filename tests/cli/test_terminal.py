"""Names from files cannot control a terminal: escape sequences are shown, not obeyed."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelkin import Taxonomy
from labelkin._checks import print_note, visible
from labelkin.cli._show import MOST_DRAWN, say_table
from support.commands import call, refused

EVIL = "cat\x1b[2J\x1b]0;owned\x07\x9b31m\u202edog"
SHOWN = "cat\\u001b[2J\\u001b]0;owned\\u0007\\u009b31m\\u202edog"


def test_control_characters_become_visible_and_all_else_stays():
    assert visible(EVIL) == SHOWN
    assert visible("tab\t, line\n, ü 猫 🐈 é") == "tab\t, line\n, ü 猫 🐈 é"


def test_a_warning_for_the_user_is_one_harmless_note(capsys: pytest.CaptureFixture[str]):
    print_note(UserWarning(EVIL), UserWarning, "file.py", 3)
    print_note("for developers", DeprecationWarning, "file.py", 3)
    assert capsys.readouterr().err == f"Note: {SHOWN}\n"


def test_a_long_table_is_printed_plain_on_a_terminal_too(capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    say_table(("id", "label"), [("1", "one-hot")])
    assert "─" in capsys.readouterr().out
    say_table(("id", "label"), [(str(k), "one-hot") for k in range(MOST_DRAWN + 1)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["id    label", "0     one-hot"]
    assert len(printed) == MOST_DRAWN + 2


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    Taxonomy.from_nested({"pet": [EVIL, "dog"], "farm": ["cow", "pig"]}).save(tmp_path / "tree.json")
    return tmp_path / "tree.json"


def harmless(text: str) -> bool:
    return not any(
        (ord(sign) < 32 and sign not in "\n\t") or 0x7F <= ord(sign) < 0xA0 or sign == "\u202e" for sign in text
    )


def test_trees_tables_errors_and_json_show_escape_sequences(tree: Path, tmp_path: Path):
    told = call("taxonomy", "show", tree)
    assert SHOWN in told.stdout
    assert harmless(told.stdout)
    np.savez(tmp_path / "p.npz", target=np.array([EVIL, "dog"]), predicted=np.array(["dog", EVIL]))
    for options in ((), ("--json",)):
        told = call("audit", tmp_path / "p.npz", "--taxonomy", tree, *options)
        assert told.exit_code == 0
        assert SHOWN in told.stdout
        assert harmless(told.stdout)
    assert EVIL in json.loads(told.stdout)["classes"]  # JSON means what it meant
    said = refused("audit", tmp_path / f"{EVIL[:8]}.npz")
    assert harmless(said)
    np.savez(tmp_path / "q.npz", target=np.array([EVIL, "dog"]), predicted=np.array(["dog", f"{EVIL}!"]))
    assert harmless(refused("audit", tmp_path / "q.npz", "--taxonomy", tree))
