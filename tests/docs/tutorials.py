"""python -m tests.docs.tutorials [01 07 ..] [--fast]: run the blocks of docs/tutorials as a reader would.

Each page has a folder of its own; how long it took is printed.

    ```sh, ```python        are run, in their order; all must end with 0
    <!-- expect: WORDS -->  after a block: a regular expression that its output must hold
    <!-- fast: A -> B; .. --> with --fast, A is written as B in the blocks of the page
"""

from __future__ import annotations

import argparse
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from descend import cli

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "tutorials"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:<!-- expect: (.*?) -->)?", re.DOTALL | re.MULTILINE)
FAST = re.compile(r"<!-- fast: (.*?) -->")


@dataclass(frozen=True)
class Block:
    """Code, its language, and what its output must hold."""

    language: str
    code: str
    expected: str = ""


def list_pages() -> list[Path]:
    return sorted(PAGES.glob("[0-9][0-9]-*.md"))


def read_blocks(page: Path, fast: bool) -> list[Block]:
    """The blocks of a page, as they stand or made small."""
    text = page.read_text(encoding="utf-8")
    changes = [change.split(" -> ") for found in FAST.findall(text) for change in found.split("; ")] if fast else []
    blocks = []
    for language, code, expected in BLOCK.findall(text):
        for before, after in changes:
            code = code.replace(before, after)
        blocks.append(Block(language, code, expected))
    return blocks


def run_block(block: Block, folder: Path) -> str:
    """What it prints; an error where it fails or prints something else."""
    here = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    command = ["bash", "-e", "-o", "pipefail", "-c"] if block.language == "sh" else [sys.executable, "-c"]
    done = subprocess.run(
        [*command, block.code], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}:\n{block.code}\n{done.stdout[-3000:]}")
    if block.expected and not re.search(block.expected, done.stdout):
        raise RuntimeError(f"no {block.expected!r} in what this printed:\n{block.code}\n{done.stdout[-3000:]}")
    if "Traceback" in done.stdout:
        raise RuntimeError(f"a traceback:\n{block.code}\n{done.stdout[-3000:]}")
    return done.stdout


def run_here(block: Block, folder: Path) -> str:
    """The same in this process where that is possible, which saves the imports: commands of `descend` and scripts, one
    on each line. The folder has to be the current one."""
    lines = block.code.splitlines()
    if block.language == "python" or any(mark in block.code for mark in ("|", "<", ">", "$", "&", ";")):
        return run_block(block, folder)
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        for line in lines:
            name, *args = shlex.split(line)
            if name == "descend":
                if code := cli.main(args):
                    raise RuntimeError(f"exit code {code}:\n{line}\n{printed.getvalue()}")
            elif name == "python" and args[0].endswith(".py"):
                before, sys.argv = sys.argv, args
                try:
                    runpy.run_path(args[0], run_name="__main__")
                finally:
                    sys.argv = before
            else:
                printed.write(run_block(Block("sh", line), folder))
    if block.expected and not re.search(block.expected, printed.getvalue()):
        raise RuntimeError(f"no {block.expected!r} in what this printed:\n{block.code}\n{printed.getvalue()}")
    return printed.getvalue()


def run_page(page: Path, folder: Path, fast: bool = False, show: bool = False, here: bool = False) -> float:
    """All blocks in a folder that has the project's docs beside it; the seconds they took."""
    (folder / "docs").symlink_to(ROOT / "docs")
    began = time.perf_counter()
    for block in read_blocks(page, fast):
        printed = (run_here if here else run_block)(block, folder)
        if show:
            print(f"{block.code}\n{printed}", flush=True)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="the beginnings of their names; all by default")
    parser.add_argument("--fast", action="store_true", help="small, as the tests run some of them")
    parser.add_argument("--show", action="store_true", help="print what the blocks print")
    given = parser.parse_args()
    chosen = [page for page in list_pages() if not given.pages or page.name.startswith(tuple(given.pages))]
    failed = 0
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{page.stem}: {run_page(page, Path(folder), given.fast, given.show):.0f} s", flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{page.stem}: FAILED, {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
