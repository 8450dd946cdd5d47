"""descend encode: images as codes of an autoencoder or a latent diffusion model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from descend.errors import Mistake
from descend.inference.editor import Coder
from descend.inference.saving import check_out
from descend.own_code import use_code
from descend.weights.tensor_file import write_tensors

CODES = "codes"


def encode(run: str | Path, images: Sequence[str | Path], checkpoint: str | int = "best") -> Tensor:
    """Codes (n, k, h, w) of image files.

    Args:
        run: a run's folder, or a model folder.
        images: the files.
        checkpoint: best, last or a step.
    """
    if not images:
        raise Mistake("name at least one image: descend encode RUN IMAGE.png --out codes.safetensors")
    return Coder.open(run, checkpoint).encode(images)


def command(
    run: str,
    images: tuple[str, ...],
    /,
    *,
    out: str = "codes.safetensors",
    replace: bool = False,
    checkpoint: str = "best",
    code: str = "",
) -> None:
    """Turn images into the codes that a model works on; `descend decode` turns them back.

    Args:
        run: a run's folder, or a model folder.
        images: the image files.
        out: the .safetensors file to write.
        replace: write `out` anew where it exists.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend encode runs/scenes a.png b.png --out codes.safetensors
    """
    use_code(code)
    path = Path(out)
    check_out(path, replace, (".safetensors", ".safetensors"))
    found = encode(run, images, checkpoint)
    write_tensors(path, {CODES: found.contiguous()})
    print(f"{len(found):,} codes of {'×'.join(map(str, found.shape[1:]))}: {path}")
