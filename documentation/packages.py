"""A page for each package: its public classes and functions, read from the source, with the first words of each."""

from __future__ import annotations

import ast
from pathlib import Path

import descend

PACKAGE = Path(descend.__file__).parent
PUBLIC = {
    "nn": "Layers, one idea per file.",
    "ops": "Equations: pure functions of tensors.",
    "losses": "Losses, by family.",
    "metrics": "What a trained model is judged by.",
    "optim": "Optimizer rules and schedules.",
    "sampling": "Decoding and sampling over a callable.",
    "text": "Tokenizers and chat templates.",
    "models": "Networks: config and model, one family per file.",
    "classic": "Learners with their own fit rule.",
    "data": "What the user has, read as streams of batches.",
    "kinds": "Builders of recipes.",
    "recipes": "Named recipes, by `descend train NAME`.",
    "inference": "Opens a run or a public folder, and answers.",
    "theory": "Closed forms: counts, bounds, laws.",
}
LONGEST = 96  # of a signature in one line
Definition = ast.ClassDef | ast.FunctionDef


def write_packages(folder: Path) -> list[dict[str, str]]:
    """The pages, and where they stand in the navigation."""
    pages = []
    for name, about in PUBLIC.items():
        parts = [f"# descend.{name}", "", about, ""]
        for path in sorted((PACKAGE / name).rglob("*.py")):
            parts += describe_file(path)
        page = f"reference/{name}.md"
        (folder / page).write_text("\n".join(parts), encoding="utf-8")
        pages.append({f"descend.{name}": page})
    return pages


def describe_file(path: Path) -> list[str]:
    """The first paragraph of a file, and a row for each thing that is defined there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, Definition) and not node.name.startswith("_")]
    if not found:
        return []
    dotted = ".".join(("descend", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    lines = [f"## {dotted}", "", first_words(tree), ""]
    for node in found:
        lines += ["```python", sign(node), "```", "", first_words(node), ""]
    return lines


def first_words(node: ast.Module | Definition) -> str:
    """The first paragraph of its docstring, as text that Markdown leaves alone."""
    words = (ast.get_docstring(node) or "").split("\n\n")[0].split("\n    ")[0]
    return escape(" ".join(words.split()))


def escape(text: str) -> str:
    """What Markdown or HTML would read as marks; `names` in backticks stay code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return mark(text.replace("`", "\\`"))
    return "".join(f"`{piece}`" if i % 2 else mark(piece) for i, piece in enumerate(pieces))


def mark(text: str) -> str:
    for letter in "*_[]#":
        text = text.replace(letter, f"\\{letter}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sign(node: Definition) -> str:
    """`name(arguments) -> result`; of a frozen dataclass its fields, which are its arguments."""
    if isinstance(node, ast.FunctionDef):
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return fold(node.name, arguments(node.args), result)
    made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if made is not None:
        return "class " + fold(node.name, arguments(made.args)[1:], "")
    fields = [ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign)]
    return "class " + fold(node.name, [field for field in fields if not field.startswith("_")], "")


def arguments(given: ast.arguments) -> list[str]:
    """Each argument with its type and its default."""
    alone = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(alone) - len(given.defaults)) + list(given.defaults)
    parts = [write(arg, default) for arg, default in zip(alone, defaults, strict=True)]
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    if given.vararg or given.kwonlyargs:
        parts.append(f"*{ast.unparse(given.vararg)}" if given.vararg else "*")
    parts += [write(arg, default) for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return parts + ([f"**{ast.unparse(given.kwarg)}"] if given.kwarg else [])


def write(arg: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if arg.annotation else "="
    return ast.unparse(arg) + (equals + ast.unparse(default) if default is not None else "")


def fold(name: str, parts: list[str], result: str) -> str:
    """In one line, or an argument to each line."""
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])
