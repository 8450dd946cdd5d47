"""descend decode: images of codes."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from descend.errors import Mistake
from descend.inference.editor import Coder
from descend.own_code import use_code
from descend.report.sheet import check_new_png, write_png
from descend.verbs.encode import CODES
from descend.verbs.sample import lay_out
from descend.weights.files import open_tensors


def decode(run: str | Path, codes: str | Path, checkpoint: str | int = "best") -> Tensor:
    """Images (n, c, h, w) in 0..1 of the codes in a file.

    Args:
        run: a run's folder, or a model folder.
        codes: the .safetensors file that `encode` wrote.
        checkpoint: best, last or a step.
    """
    file = open_tensors(Path(codes))
    if CODES not in file.shapes or len(file.shapes[CODES]) != 4:
        raise Mistake(f"{codes} holds no codes (n, k, h, w); write it with: descend encode RUN IMAGE.png --out {codes}")
    return Coder.open(run, checkpoint).decode(file.get(CODES))


def command(
    run: str,
    codes: str,
    /,
    *,
    out: str = "decoded.png",
    replace: bool = False,
    checkpoint: str = "best",
    code: str = "",
) -> None:
    """Turn codes back into images.

    Args:
        run: a run's folder, or a model folder.
        codes: the .safetensors file that `descend encode` wrote.
        out: the .png file to write, all images on one sheet.
        replace: write `out` anew where it exists.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend decode runs/scenes codes.safetensors --out images.png
    """
    use_code(code)
    path = Path(out)
    check_new_png(path, "--out", replace)
    found = decode(run, codes, checkpoint)
    write_png(path, lay_out(found), "--out", smallest=1)
    print(f"{len(found):,} {'image' if len(found) == 1 else 'images'}: {path}")
