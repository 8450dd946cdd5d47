"""python -m tests.touched [--base REV] [--limit FILES]: the test files to run for what is changed, nearest first.

    distance 0    the changed test files, and the mirror of a changed file: descend/nn/mlp.py -> tests/nn/test_mlp.py
    distance n    test files that import a changed file through n - 1 others

There are at most `limit` files; among equally distant ones, those that mirror a file on the way come first. The
contracts, which also try every model, are always run. `make check` runs these tests; `make test` runs all of them.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 25
CONTRACTS = "tests/contracts"
BY_NAME = {  # what no import statement reaches
    "recipes": ["tests/recipes/test_contract.py"],
    "catalog": ["tests/catalog/test_examples.py"],
    "tests/conftest.py": ["tests/catalog/test_proof.py"],
}


def list_changed(root: Path = ROOT, base: str = "") -> list[str]:
    """Files that differ from `base` (default: where the branch left its upstream, or the last commit), and new ones."""
    if not base:
        base = run_git(root, "merge-base", "HEAD", "@{upstream}", check=False).strip() or "HEAD"
    tracked = run_git(root, "diff", "--name-only", base).splitlines()
    return sorted({*tracked, *run_git(root, "ls-files", "--others", "--exclude-standard").splitlines()})


def run_git(root: Path, *args: str, check: bool = True) -> str:
    return subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=check).stdout


def list_imports(source: str) -> Iterator[str]:
    """Dotted names that a file imports: of `from a import b` both a and a.b, since b may be a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def find_importers(root: Path = ROOT) -> dict[str, set[str]]:
    """File -> the files of descend and tests that import it. `from a.b import c` imports a/b/c.py, or else a/b."""
    files = [path for folder in ("descend", "tests") for path in sorted((root / folder).rglob("*.py"))]
    paths = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    module = {path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): path for path in paths}
    found: dict[str, set[str]] = {}
    for path, source in paths.items():
        names = {name for name in list_imports(source) if name in module}
        for name in names:
            if not any(other.startswith(f"{name}.") for other in names):
                found.setdefault(module[name], set()).add(path)
    return found


def mirror(path: str) -> str:
    """descend/nn/mlp.py -> tests/nn/test_mlp.py, and descend/nn/_mlp.py -> the same."""
    inside = Path(path).relative_to("descend")
    return (Path("tests") / inside.parent / f"test_{inside.stem.lstrip('_')}.py").as_posix()


def is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def find_tests(changed: Iterable[str], root: Path = ROOT, limit: int = LIMIT) -> list[str]:
    """The test files that reach the changed files, nearest first, at most `limit` of them."""
    importers = find_importers(root)
    layer = sorted(changed)
    seen, found = set(layer), list[str]()
    near = sorted({test for path in layer for test in find_nearest(path, root)})
    while layer and len(found) < limit:
        near += sorted((path for path in layer if is_test(path)), key=lambda test: (test not in mirrors(seen), test))
        found += [test for test in dict.fromkeys(near) if test not in found and (root / test).exists()]
        layer, near = sorted({path for done in layer for path in importers.get(done, ())} - seen), []
        seen |= set(layer)
    return found[:limit]


def find_nearest(path: str, root: Path) -> list[str]:
    """The test files of one changed file: its mirror, or, for a table or a C++ file, all those of its folder."""
    parts = path.split("/")
    if parts[0] == "descend" and path.endswith(".py"):
        return [mirror(path), *BY_NAME.get(parts[1], ())]
    if parts[0] == "descend" and len(parts) > 2:
        return [test.relative_to(root).as_posix() for test in (root / "tests" / parts[1]).rglob("test_*.py")]
    return list(BY_NAME.get(path, ()))


def mirrors(paths: Iterable[str]) -> set[str]:
    return {mirror(path) for path in paths if path.startswith("descend/") and path.endswith(".py")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.touched", description=__doc__)
    parser.add_argument("--base", default="", help="compare with this commit")
    parser.add_argument("--limit", type=int, default=LIMIT, help="at most so many test files, beside the contracts")
    given = parser.parse_args()
    found = find_tests(list_changed(base=given.base), limit=given.limit)
    print("\n".join([CONTRACTS, *(test for test in found if not test.startswith(CONTRACTS))]))


if __name__ == "__main__":
    main()
