"""The examples as pages: scripts and notebooks as they stand, each under its own first words."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def write_examples(folder: Path) -> list[Any]:
    """A page for each, and one that lists them."""
    place = folder / "examples"
    place.mkdir()
    rows, pages = [], []
    for path in sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]):
        title, text = (read_script if path.suffix == ".py" else read_notebook)(path)
        (place / f"{path.stem}.md").write_text(f"# {title}\n\n`examples/{path.name}`\n\n{text}", encoding="utf-8")
        rows.append(f"| [{title}]({path.stem}.md) | `examples/{path.name}` |")
        pages.append({title: f"examples/{path.stem}.md"})
    about = "Short programs to copy from. Each runs in the test suite, made small, so that none of them is out of date."
    listed = ["# Examples", "", about, "", "| | |", "|---|---|", *rows, ""]
    (place / "index.md").write_text("\n".join(listed), encoding="utf-8")
    return ["examples/index.md", *pages]


def read_script(path: Path) -> tuple[str, str]:
    """The docstring's first line and the rest, then the code."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, about = (ast.get_docstring(tree) or path.stem).partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip("\n")
    return title.rstrip("."), f"{about.strip()}\n\n```python\n{code}\n```\n"


def read_notebook(path: Path) -> tuple[str, str]:
    """The cells in their order; the first one's heading is the title."""
    cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    title, _, about = cells[0][1].partition("\n")
    parts = [about.strip(), *(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells[1:])]
    return title.lstrip("# "), "\n\n".join(parts) + "\n"
