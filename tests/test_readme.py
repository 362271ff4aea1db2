from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from serve.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_the_programs_own() -> None:
    printed = CliRunner().invoke(app, ["settings", "--markdown"])
    assert printed.exit_code == 0
    table = README.split("<!-- settings -->")[1].split("<!-- /settings -->")[0].strip()
    assert table == printed.stdout.strip(), "run `evercore settings --markdown` and put its table into README.md"


def test_the_commands_it_names_exist() -> None:
    names = {command.name or (command.callback.__name__ if command.callback else "") for command in app.registered_commands}
    for line in README.splitlines():
        words = line.strip().split()
        if line.startswith("    evercore ") and not words[1].startswith("-"):
            assert words[1] in names
