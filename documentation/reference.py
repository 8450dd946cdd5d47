"""The reference: Python's functions from their docstrings, the commands from their --help."""

from __future__ import annotations

import inspect
import io
import re
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType

import descend
from descend.cli import VERBS, main

PUBLIC = (
    "nn", "losses", "metrics", "optim", "ops", "text", "sampling", "models", "data", "kinds", "recipes", "inference",
)  # fmt: skip

RULE = """**Public** is what stands on this page: the functions of `descend`, the classes and functions without a
leading underscore in the packages below, config and recipe classes with their fields. What begins with an underscore,
`descend.engine`, `descend.kinds` below a recipe's fields, and every file that a page does not name may change in any
release. A public name that goes is kept for one release, with a warning."""


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
        parts += [f"## descend.{name}", "", f"```python\ndescend.{name}{sign(found)}\n```", "", prose(found), ""]
    parts += ["## Packages", "", "| package | what it holds |", "|---|---|"]
    for name in PUBLIC:
        module = __import__(f"descend.{name}", fromlist=["_"])
        parts.append(f"| `descend.{name}` | {first_line(module)} |")
    path = folder / "reference" / "python.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*parts, ""]), encoding="utf-8")
    return "reference/python.md"


def sign(found: object) -> str:
    try:
        return str(inspect.signature(found))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(…)"


def prose(found: object) -> str:
    """A docstring as Markdown: its sections as lists."""
    text = inspect.getdoc(found) or ""
    text = re.sub(r"^(Args|Returns|Examples):\n", r"**\1**\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^ {4}(\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)


def first_line(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").partition("\n")[0].replace("|", "\\|")


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
