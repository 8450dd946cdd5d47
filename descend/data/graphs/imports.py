"""Which modules of Python's standard library import which, read from their sources: nothing is imported.

    node        a module that is written in Python; tests are left out
    edge        module → module that an import statement names, also inside functions; `from a import b` leads to a.b
                where that is a module, else to a
    attributes  log(1 + how often) of some kinds of statements and expressions: how a module is written, not its name
    class       its package, of packages with at least `FEWEST` modules; modules outside them have none

Modules of one package import each other, so the links tell the package, and what a module looks like tells little.
What is found is kept by a digest of all sources, since reading them takes seconds.
"""

from __future__ import annotations

import ast
import os
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import xxhash

from descend import files
from descend.data.detection.annotated import Notes
from descend.data.graphs.clean import link_cleanly
from descend.data.graphs.node_graph import NodeGraph
from descend.data.reading import cache_folder, digest, show
from descend.errors import Mistake

FEWEST = 12
LEFT_OUT = {"test", "tests", "idle_test", "__pycache__", "ensurepip", "turtledemo"}
KINDS = (
    *("AsyncFunctionDef", "Assert", "Attribute", "Await", "BinOp", "Call", "ClassDef", "Compare", "Constant"),
    *("Dict", "For", "FunctionDef", "If", "Import", "ImportFrom", "JoinedStr", "Lambda", "ListComp"),
    *("Raise", "Return", "Subscript", "Try", "Tuple", "While", "With", "Yield"),
)
FORM = 1  # of what is kept


@lru_cache(maxsize=1)
def load_imports() -> NodeGraph:
    """The graph of the library that this Python came with."""
    root = Path(sysconfig.get_path("stdlib"))
    sources = find_sources(root)
    if len(sources) < 100:
        raise Mistake(f"{show(root)} has no sources of the standard library; install them, or use another graph")
    found = read_kept(sources)
    names = list(found["names"])
    number = {name: i for i, name in enumerate(names)}
    pairs = torch.tensor([(number[a], number[b]) for a, b in found["imports"]])
    counts = torch.tensor(found["counts"], dtype=torch.float32)
    graph = link_cleanly(counts.log1p(), pairs, False, lambda k: " imports ".join(found["imports"][k]), Notes())
    packages = [name.partition(".")[0] for name in names]
    sizes = Counter(packages)
    labels = tuple(sorted(name for name, size in sizes.items() if size >= FEWEST))
    y = torch.tensor([labels.index(package) if package in labels else -1 for package in packages])
    return NodeGraph(graph, y, labels, tuple(names), columns=tuple(KINDS))


def find_sources(root: Path) -> dict[str, Path]:
    """Name of each module -> its file."""
    found = {}
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name.isidentifier() and name not in LEFT_OUT)
        for path in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def read_kept(sources: dict[str, Path]) -> dict[str, Any]:
    """What the sources say, as it was kept when they were the same, or read now."""
    key = xxhash.xxh3_128(f"{FORM} {' '.join(KINDS)}\n".encode())
    for name, path in sources.items():
        key.update(f"{name} {digest(path)}\n".encode())
    folder = cache_folder()
    kept = folder / "graphs" / f"imports-{key.hexdigest()}.json" if folder else None
    if kept and kept.exists():
        try:
            values = files.read_json(kept)
            return {part: files.field(values, part, list, kept) for part in ("names", "imports", "counts")}
        except Mistake:  # damaged: it is written anew
            pass
    found = read_sources(sources)
    if kept:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(kept, found)
        except OSError:  # without a place to keep it, it is read again next time
            pass
    return found


def read_sources(sources: dict[str, Path]) -> dict[str, Any]:
    """Names, imports as pairs of names, and counts of `KINDS` of each module."""
    imports, counts = [], []
    for name, path in sources.items():
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise Mistake(f"{show(path)} is no source of this Python ({error}); reinstall it") from None
        nodes = list(ast.walk(tree))
        kinds = Counter(type(node).__name__ for node in nodes)
        counts.append([kinds[kind] for kind in KINDS])
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        there = {target for node in statements for target in list_imported(node, package, sources)}
        imports += [[name, target] for target in sorted(there - {name})]
    return {"names": list(sources), "imports": imports, "counts": counts}


def list_imported(node: ast.Import | ast.ImportFrom, package: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules that an import statement of a module in this package names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    else:
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}" if base else alias.name
            if inner in known:
                yield inner
            elif base in known:
                yield base
