"""What was dropped on a page: a file, or a folder with all that is in it. It is kept beside the runs.

POST /api/upload?name=table.csv                a file by itself
POST /api/folder {"name": "pets"}              a new folder: {"path", "key"}
POST /api/upload?name=cats/1.png&into=KEY      a file of that folder, under the very name that it has there
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.workbench.place import clean_name

if TYPE_CHECKING:
    from descend.workbench.app import Studio

MOST, LARGEST = 100_000, 2**34  # files of a folder, and their bytes
DEEPEST, LONGEST = 12, 200  # folders one in another, and bytes of a name


@dataclass
class Folder:
    """One that is being filled."""

    path: Path
    files: int = 0
    size: int = 0


def add_routes(api: FastAPI, studio: Studio) -> None:
    home = studio.place.own / "files"
    folders: dict[str, Folder] = {}

    @api.post("/api/folder")
    async def begin(request: Request) -> JSONResponse:
        name = (await read_body(request)).get("name")
        path = make_folder(home, clean_name(name) if isinstance(name, str) else "files")
        folders[path.name] = Folder(path)
        return JSONResponse({"path": str(path), "key": path.name})

    @api.post("/api/upload")
    async def upload(request: Request, name: str, into: str = "") -> JSONResponse:
        folder = folders.get(into)
        if into and folder is None:
            raise Mistake("this folder is not being filled any more: drop it again")
        path = folder.path / clean_path(name) if folder else home / clean_name(name)
        size = await keep(request, home, path)
        if folder is not None:
            folder.files, folder.size = folder.files + 1, folder.size + size
            if folder.files > MOST or folder.size > LARGEST:
                folders.pop(into)
                said = f"a folder that is dropped has at most {MOST:,} files and {LARGEST / 2**30:.0f} GB"
                raise Mistake(f"{said}: start the studio in the folder above it, and type its path")
        return JSONResponse({"path": str(path), "bytes": size})


async def keep(request: Request, home: Path, path: Path) -> int:
    """What is sent as a file, whole or not at all; its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = home / f".{time.time_ns()}"
    try:
        with aside.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path.stat().st_size


def make_folder(home: Path, name: str) -> Path:
    """A new one of this name; with a number, where there is one already."""
    home.mkdir(parents=True, exist_ok=True)
    for i in count(1):
        path = home / (name if i == 1 else f"{name}-{i}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError


def clean_path(name: str) -> Path:
    """A file's place in its folder. Names stay as they are: those of folders are classes, and lists name files."""
    parts = name.split("/")
    for part in parts:
        odd = part.startswith(".") or "\\" in part or not part.isprintable()
        if not part or odd or len(part.encode()) > LONGEST:
            raise Mistake(f"{name[:LONGEST]!r} is no name for a file in a folder; rename it")
    if len(parts) > DEEPEST:
        raise Mistake(f"{name[:LONGEST]!r} lies in more than {DEEPEST} folders")
    return Path(*parts)
