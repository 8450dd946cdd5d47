"""descend index: a folder of documents becomes searchable, and stays so as it changes."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path

from descend.errors import Mistake
from descend.inference.passage_index import Update, update_index
from descend.own_code import use_code


def index(
    folder: str | Path, out: str | Path, by: str = "", least: int = 0, most: int = 0, replace: bool = False
) -> Update:
    """Make an index of the documents of a folder, or bring it up to date.

    Args:
        folder: a folder of .txt, .md, .rst, .py and .jsonl files, or one such file.
        out: the index's folder; where there is one, only files that changed are read anew.
        by: bm25 (keywords), or a run or model folder that embeds texts; empty: as before, else bm25.
        least: fewest words of a passage; 0: as before, else 200.
        most: most words of a passage; 0: as before, else 300.
        replace: index everything anew.
    """
    if not str(out):
        raise Mistake(f"say where the index goes: descend index {folder} --out INDEX")
    return update_index(folder, out, by, least, most, replace)


def command(
    folder: str,
    /,
    *,
    out: str = "",
    by: str = "",
    least: int = 0,
    most: int = 0,
    replace: bool = False,
    code: str = "",
    json: bool = False,
) -> None:
    """Make an index of the documents of a folder, or bring it up to date: `descend ask` answers from it.

    Args:
        folder: a folder of .txt, .md, .rst, .py and .jsonl files, or one such file.
        out: the index's folder; where there is one, only files that changed are read anew.
        by: bm25 (keywords), or a run or model folder that embeds texts; empty: as before, else bm25.
        least: fewest words of a passage; 0: as before, else 200.
        most: most words of a passage; 0: as before, else 300.
        replace: index everything anew.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print what was done as JSON.

    Examples:
        descend index docs/ --out docs-index
        descend index docs/ --out docs-index --by minilm/
        descend ask docs-index "How is a run resumed?"
    """
    use_code(code)
    done = index(folder, out, by, least, most, replace)
    if json:
        print(json_module.dumps(asdict(done), ensure_ascii=False))
        return
    counts = {"added": done.added, "changed": done.changed, "removed": done.removed}
    files = ", ".join(f"{len(names)} {what}" for what, names in counts.items() if names)
    files = ", ".join([*([files] if files else []), *([f"{done.unchanged} unchanged"] if done.unchanged else [])])
    print(f"{out}: {done.passages:,} passages ({done.embedded:,} new) found by {done.embedder}; files: {files}")
