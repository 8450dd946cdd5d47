"""A mark of what decides a lab's numbers: `measure`, and whatever of the labs' own files it uses.

Comments, docstrings, claims, predictions, `effects` and `figure` are not part of it: to word or judge a lab otherwise
asks for no new measurement. A change anywhere in what `measure` calls does.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

LABS = Path(__file__).parent
PACKAGE = "descend.labs"


def mark_source(name: str) -> str:
    """The mark of a lab."""
    return mark_file(LABS / f"{name.replace('-', '_')}.py")


def mark_file(path: Path) -> str:
    """The same for any file with a `measure`; those that it imports from this package lie beside it."""
    parts: dict[str, str] = {}
    collect("measure", path, parts)
    text = "\n".join(f"{place}: {parts[place]}" for place in sorted(parts))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def collect(name: str, path: Path, parts: dict[str, str]) -> None:
    """Put the definition of a name, and of all that it uses, into `parts`."""
    place = f"{path.stem}.{name}"
    node = read_names(path.read_text(encoding="utf-8")).get(name)
    if node is None or place in parts:
        return
    parts[place] = ""
    if isinstance(node, ast.ImportFrom | ast.Import):
        alias = next(alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name)
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        parts[place] = f"{module} {alias.name}"
        if module.startswith(f"{PACKAGE}."):
            collect(alias.name, path.with_name(f"{module.removeprefix(PACKAGE + '.')}.py"), parts)
        return
    parts[place] = repr(spell(node))
    for used in ast.walk(node):
        if isinstance(used, ast.Name):
            collect(used.id, path, parts)


@cache
def read_names(text: str) -> dict[str, ast.stmt]:
    """What the top level of a file defines."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0]: node for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {n.id: node for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def spell(node: Any) -> Any:
    """A piece of syntax as nested tuples: without places, empty fields and docstrings, the same on every Python."""
    if isinstance(node, list):
        return tuple(spell(part) for part in node)
    if not isinstance(node, ast.AST):
        return node
    fields = {field: value for field, value in ast.iter_fields(node) if value is not None and value != []}
    body = fields.get("body")
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
        fields["body"] = body[1:] if isinstance(body, list) else body
    return (type(node).__name__, *((field, spell(value)) for field, value in sorted(fields.items())))
