"""Every script and notebook of examples/ runs, made small: `NAME = 300  # in the tests: 4` is 4 here."""

from __future__ import annotations

import ast
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from documentation.examples import EXAMPLES, read_notebook, read_script, write_examples

SMALL = re.compile(r"^([A-Z_, ]+) = .*  # in the tests: (.*)$", re.MULTILINE)
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def make_small(code: str) -> str:
    return SMALL.sub(r"\1 = \2", code)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    copied = tmp_path / path.name
    copied.write_text(make_small(path.read_text(encoding="utf-8")), encoding="utf-8")
    module = types.ModuleType("__main__")
    module.__file__ = str(copied)
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(copied.read_text(encoding="utf-8"), str(copied), "exec"), vars(module))
    assert any((tmp_path / "runs").glob("*/report.html"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell; what its last line gives can be shown."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        assert cell["cell_type"] != "code" or not cell["outputs"], "outputs are not kept in the repository"
        if cell["cell_type"] == "code":
            show(run_cell(make_small("".join(cell["source"])), names))


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """What its last expression gives."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def show(value: Any) -> str:
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


def test_each_has_a_title_and_a_page(tmp_path: Path) -> None:
    listed = write_examples(tmp_path)
    assert len(listed) == 1 + len(SCRIPTS) + len(NOTEBOOKS)
    for path in SCRIPTS:
        title, text = read_script(path)
        assert 10 < len(title) < 80
        assert "```python" in text
    assert all(read_notebook(path)[0][0].isupper() for path in NOTEBOOKS)
    assert "own_table.md" in (tmp_path / "examples" / "index.md").read_text(encoding="utf-8")
