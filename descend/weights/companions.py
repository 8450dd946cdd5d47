"""What lies beside the weights in a model's folder and goes with them: tokenizer, image processor, generation config.

A model is of little use without them, and transformers invents what is missing: a folder without its tokenizer gets one
of five tokens, without a word. What a folder came with is therefore kept with the model and written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from descend.files import read_bytes
from descend.weights.checkpoints import CHECKSUMS, list_folder

SUFFIXES = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".vocab", ".merges", ".md")
OWN = ("config.json", "state.json", "stages.json", CHECKSUMS)  # written anew, or part of a run
NAMELESS = ("LICENSE", "NOTICE")
LARGEST = 2**26  # bytes; the largest tokenizers have half of it


def read_companions(folder: Path) -> dict[str, bytes]:
    """The files of a folder that are neither weights nor the state of a run, by name; of a folder in it (the pooling of
    a sentence encoder) the config."""
    there = list_folder(folder)
    folders = [path for path in there if path.is_dir() and not path.name.startswith(".")]
    nested = [path / "config.json" for path in folders if not (path / "tokenizer.json").is_file()]  # else a whole model
    found = {path.relative_to(folder).as_posix(): path for path in sorted([*there, *nested]) if path.is_file()}
    return {
        name: read_bytes(path, LARGEST)
        for name, path in found.items()
        if goes_along(name) and path.stat().st_size <= LARGEST
    }


def goes_along(name: str) -> bool:
    """Whether a file describes the model and is not made of it."""
    path = PurePosixPath(name)
    if path.name.startswith(".") or name in OWN or path.name.endswith(".index.json"):
        return False
    return path.suffix in SUFFIXES or path.name in NAMELESS


def write_companions(folder: Path, companions: Mapping[str, bytes]) -> None:
    """The same files in another folder; what is there already is of this model and stays."""
    for name, content in companions.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
