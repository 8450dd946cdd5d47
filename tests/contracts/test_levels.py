"""Imports go only downward, never sideways; each folder holds only what belongs there."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.source import LEVEL, files, files_of, folders, imports, nodes_of, part

EQUATIONS = ("ops", "nn", "models", "tasks")
DRAWERS = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py", "base.py"}


def violations(path: str, tree: ast.AST) -> list[str]:
    """What a file imports from its own level elsewhere, or from above."""
    here = part(path)
    wrong = []
    for module in imports(tree):
        there = module.split(".")[1] if "." in module else "__init__"
        if there in LEVEL and there != here and LEVEL[there] >= LEVEL[here]:
            wrong.append(f"{path} (level {LEVEL[here]}) imports {module} (level {LEVEL[there]})")
    return wrong


def test_every_file_has_a_level() -> None:
    assert {part(path) for path in files()} <= set(LEVEL)


@pytest.mark.parametrize("folder", folders())
def test_imports_go_downward(folder: str) -> None:
    found = [wrong for path, tree in files_of(folder).items() for wrong in violations(path, tree)]
    assert not found, "\n".join(found)


def test_a_hidden_upward_import_is_found() -> None:
    tree = ast.parse("def f():\n    from descend.engine.fit import fit\n")
    assert violations("nn/attention/multi_head.py", tree)
    assert violations("losses/language.py", ast.parse("import descend.nn.mlp"))
    assert not violations("models/gpt2.py", ast.parse("from descend.nn.mlp import MLP"))


def test_no_drawers() -> None:
    assert not [path for path in files() if path.rpartition("/")[2] in DRAWERS]


@pytest.mark.parametrize("folder", EQUATIONS)
def test_equations_hide_nothing(folder: str) -> None:
    """No **kwargs and no hasattr: a reader must see what a call takes."""
    for path, node in nodes_of(folder):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            assert node.args.kwarg is None, f"{path}:{node.lineno} takes **{node.args.kwarg.arg}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hasattr", f"{path}:{node.lineno} asks hasattr"


def test_no_yield_inside_with() -> None:
    """A generator that stops inside `with torch.no_grad()` would leave gradients off in its caller."""
    for path, node in nodes_of("tasks"):
        if isinstance(node, ast.With):
            inside = [n for n in ast.walk(node) if isinstance(n, ast.Yield | ast.YieldFrom)]
            assert not inside, f"{path}:{node.lineno} yields inside a with"


def test_what_must_not_be_where() -> None:
    for path, tree in files().items():
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        texts = {m for n in ast.walk(tree) if isinstance(n, ast.Import) for m in (a.name for a in n.names)}
        texts |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        if LEVEL[part(path)] < 4:
            assert not any(t.startswith("matplotlib") for t in texts), f"{path} plots below kinds"
        if LEVEL[part(path)] < 3 and not path.startswith("optim/"):
            assert not any(t.startswith("torch.distributed") for t in texts), f"{path} knows processes below engine"
        if part(path) in ("engine", "tasks"):
            assert not any(t.startswith("descend.models") for t in texts), f"{path} names a model"
        assert "pickle" not in texts, f"{path} pickles"
        assert not names & {"cloudpickle"}, path
