"""The reference: Python's functions from their docstrings, the commands from their --help."""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType

import descend
from descend.cli import VERBS, main
from documentation.packages import PUBLIC, sign

RULE = """**Public** is what stands in this reference: the functions of `descend` on this page, and the classes and
functions without a leading underscore in the packages below, config and recipe classes with their fields. What begins
with an underscore, and every package that has no page here (`descend.engine`, `descend.tasks`, `descend.workbench` …),
may change in any release. A public name that goes is kept for one release, with a warning."""


def write_functions(folder: Path) -> str:
    """The functions of `import descend`, and what is public beside them."""
    parts = [
        "# Python",
        "",
        "`import descend` has a function for each verb; they are imported when first used.",
        "",
        RULE,
        "",
    ]
    for name in descend.__all__:
        found = getattr(descend, name)
        if isinstance(found, ModuleType) or not callable(found):
            continue
        parts += [f"## descend.{name}", "", "```python", sign_function(name, found), "```", "", prose(found), ""]
    parts += ["## Packages", "", "| package | what it holds |", "|---|---|"]
    parts += [f"| [descend.{name}]({name}.md) | {about} |" for name, about in PUBLIC.items()]
    path = folder / "reference" / "python.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*parts, ""]), encoding="utf-8")
    return "reference/python.md"


def sign_function(name: str, found: Callable[..., object]) -> str:
    """As it stands in the source, with the types as they are written there."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return f"descend.{sign(node)}"


def prose(found: object) -> str:
    """A docstring as Markdown: its sections as lists."""
    text = inspect.getdoc(found) or ""
    text = re.sub(r"^(Args|Returns|Examples):\n", r"**\1**\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^ {4}(\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)


def write_commands(folder: Path) -> str:
    """Every verb with its help."""
    parts = ["# Commands", ""]
    for group, verbs in VERBS.items():
        parts += [f"## {group.capitalize()}", ""]
        for verb in verbs:
            page = io.StringIO()
            with redirect_stdout(page), suppress(SystemExit):
                main([verb.name, "--help"])
            parts += [f"### descend {verb.name}", "", f"{verb.summary[:1].upper()}{verb.summary[1:]}.", ""]
            parts += ["```text", page.getvalue().rstrip(), "```", ""]
    path = folder / "reference" / "commands.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")
    return "reference/commands.md"
