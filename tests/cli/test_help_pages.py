"""The help of every command is text whose lines fill the terminal."""

import typer.main

from labelkin.cli._app import app


def test_paragraphs_of_the_help_are_single_lines():
    commands = [typer.main.get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        for paragraph in (command.help or "").split("\n\n"):
            assert "\n" not in paragraph, command.name
    assert len(commands) > 40
