"""descend embed: the vectors that a trained encoder makes of texts, images or graphs, and how alike they are."""

from __future__ import annotations

import io
import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from descend.errors import Mistake
from descend.files import write_bytes, write_text
from descend.inference.encoder import Encoder, Vectors, encodes_texts
from descend.inference.inputs import PlainText, describe_reading, names_images
from descend.inference.saving import check_out, format_jsonl
from descend.own_code import use_code
from descend.verbs.table import format_table

KINDS = (".npy", ".jsonl")
SHOWN = 12  # inputs whose cosines are printed
NAMED = 24  # characters of an input in the table


def embed(
    run: str | Path,
    *inputs: str | Path,
    out: str | Path = "",
    replace: bool = False,
    text: bool = False,
    checkpoint: str | int = "best",
) -> Tensor:
    """The vectors of texts, images or the nodes of graphs by a trained encoder: (n, d).

    Args:
        run: a run's folder, or a model folder.
        inputs: texts; files of texts (a text on each line, or .csv, .tsv, .jsonl); image files, folders or patterns;
            graphs as for predict.
        out: a .npy file (n, d) or a .jsonl file of {"input", "vector"} to write.
        replace: write `out` anew where it exists.
        text: the inputs are texts, even where there are files of these names.
        checkpoint: best, last or a step.
    """
    return encode(run, inputs, out, replace, text, checkpoint)[0].x


def encode(
    run: str | Path, inputs: Sequence[str | Path], out: str | Path, replace: bool, text: bool, checkpoint: str | int
) -> tuple[Vectors, list[str]]:
    """The vectors, and what there is to say about how the inputs were read."""
    if not inputs:
        raise Mistake(f'name texts or images, or graphs: descend embed {run} "a text" "another text"')
    encoder = Encoder.open(run, checkpoint)
    if out:
        check_out(Path(out), replace, KINDS)
    given: list[str] = [PlainText(i) if text else str(i) for i in inputs]
    found = encoder.encode(given)
    if out:
        write_vectors(Path(out), found)
    texts = [one for one in given if not names_images(one)] if encodes_texts(encoder.trained) else []
    return found, describe_reading(texts)


def write_vectors(path: Path, found: Vectors) -> None:
    """x as .npy, or a record for each input as .jsonl."""
    if path.suffix == ".jsonl":
        write_text(path, format_jsonl(list_vectors(found)))
        return
    page = io.BytesIO()
    np.save(page, found.x.numpy())
    write_bytes(path, page.getvalue())


def list_vectors(found: Vectors) -> list[dict[str, object]]:
    return [{"input": given, "vector": x} for given, x in zip(found.inputs, found.x.tolist(), strict=True)]


def show_cosines(found: Vectors) -> None:
    """A table of all pairs, and of each the most alike other one where there are many."""
    cosines = found.cosines()
    names = [shorten(given) for given in found.inputs]
    if len(names) <= SHOWN:
        rows = [[name, *(f"{c:.3f}" for c in row.tolist())] for name, row in zip(names, cosines, strict=True)]
        print(format_table(["cosine", *map(str, range(1, len(names) + 1))], rows))
        return
    nearest = cosines.fill_diagonal_(-2.0).max(dim=1)
    pairs = zip(names, nearest.indices.tolist(), nearest.values.tolist(), strict=True)
    print(format_table(["input", "most alike", "cosine"], [[name, names[k], f"{c:.3f}"] for name, k, c in pairs]))


def shorten(given: str) -> str:
    """The beginning of a text, the end of a path, on one line."""
    words = " ".join(given.split())
    return words if len(words) <= NAMED else f"{words[: NAMED - 1]}…"


def command(
    run: str,
    inputs: tuple[str, ...],
    /,
    *,
    out: str = "",
    replace: bool = False,
    text: bool = False,
    checkpoint: str = "best",
    code: str = "",
    json: bool = False,
) -> None:
    """Vectors of texts, images or graphs by a trained encoder; of two or more the cosines are printed.

    Args:
        run: a run's folder, or a model folder (BERT, MiniLM, CLIP, a classifier of images).
        inputs: texts; files of texts (a text on each line, or .csv, .tsv, .jsonl); image files, folders or patterns;
            graphs as for predict.
        out: a .npy or .jsonl file to write the vectors to.
        replace: write --out anew where it exists.
        text: the inputs are texts, even where there are files of these names.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print the vectors as JSON.

    Examples:
        descend embed minilm/ "a cat sat" "a dog ran" "stocks fell"
        descend embed minilm/ sentences.txt --out vectors.npy
        descend embed runs/digits photos/ --out vectors.jsonl
    """
    use_code(code)
    found, notes = encode(run, inputs, out, replace, text, checkpoint)
    for note in notes:
        print(note, file=sys.stderr)
    if json:
        print(json_module.dumps(list_vectors(found), ensure_ascii=False))
        return
    n, d = found.x.shape
    print(f"{n:,} vector{'s' * (n > 1)} of {d:,} numbers" + (f", written {out}" if out else ""))
    if n > 1:
        show_cosines(found)
    elif not out:
        print(" ".join(f"{v:.4g}" for v in found.x[0].tolist()))
