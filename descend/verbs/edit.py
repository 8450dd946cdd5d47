"""descend edit: an image changed by a diffusion model, all of it or where a mask says, or translated (pix2pix,
CycleGAN)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from torch import Tensor

from descend.errors import Mistake
from descend.inference.editor import Editor, read_pixels
from descend.inference.sampler import Order
from descend.inference.trained import load_trained
from descend.inference.translator import TranslatesImages, Translator
from descend.own_code import use_code
from descend.report.sheet import check_new_png, write_png
from descend.verbs.sample import lay_out


def edit(
    run: str | Path,
    image: str | Path,
    prompt: str = "",
    strength: float = 0.8,
    mask: str | Path = "",
    depth: str | Path = "",
    label: str = "",
    guidance: float | None = None,
    steps: int = 0,
    method: str = "",
    size: int = 0,
    count: int = 1,
    seed: int = 0,
    checkpoint: str | int = "best",
    back: bool = False,
) -> Tensor:
    """Versions of an image: (count, c, h, w) in 0..1.

    Args:
        run: a run's folder, or a model folder.
        image: the file to change.
        prompt: what it should show.
        strength: 0: the image as it is; 1: a new one.
        mask: a grey image of the same size: white where it is to be new; all else stays to the pixel.
        depth: a grey image of the same size, for a model that draws along depth maps.
        label: the class that it should show.
        guidance: how much the class or prompt counts; 1 is the conditional model itself.
        steps: of the sampler; 0: the model's own number.
        method: the sampler, e.g. ddpm or ddim.
        size: bring the image (and its maps) to this side first; 0: as they are.
        count: how many versions.
        seed: of the random numbers.
        checkpoint: best, last or a step.
        back: of a model that translates both ways: from the target to the source.
    """
    trained = load_trained(run, checkpoint)
    if isinstance(trained.model, TranslatesImages):
        return Translator.read(trained).translate([image], back)
    if back:
        raise Mistake(f"--back: {run} holds a {trained.kind}, which does not translate images; leave this flag out")
    editor = Editor.open(run, checkpoint)
    hole, far = (read_pixels(path, 1, size)[0] if str(path) else None for path in (mask, depth))
    order = Order(steps, guidance, method, label, prompt)
    return editor.edit(editor.read_image(image, size), order, strength, hole, far, count, seed)


def command(
    run: str,
    image: str,
    /,
    *,
    prompt: str = "",
    strength: float = 0.8,
    mask: str = "",
    depth: str = "",
    label: Annotated[str, tyro.conf.arg(name="class")] = "",
    guidance: float | None = None,
    steps: int = 0,
    method: str = "",
    size: int = 0,
    count: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 1,
    seed: int = 0,
    out: str = "",
    replace: bool = False,
    checkpoint: str = "best",
    code: str = "",
    back: bool = False,
) -> None:
    """Change an image with a diffusion model (noise is added up to a strength and removed again), or translate it with
    pix2pix or CycleGAN.

    Args:
        run: a run's folder, or a model folder.
        image: the file to change.
        prompt: what it should show.
        strength: 0: the image as it is; 1: a new one.
        mask: a grey image of the same size: white where it is to be new; all else stays to the pixel.
        depth: a grey image of the same size, for a model that draws along depth maps.
        label: the class that it should show.
        guidance: how much the class or prompt counts; 1 is the conditional model itself.
        steps: of the sampler; 0: the model's own number.
        method: the sampler, e.g. ddpm or ddim.
        size: bring the image (and its maps) to this side first; 0: as they are.
        count: how many versions, side by side.
        seed: of the random numbers.
        out: the .png file to write; empty: IMAGE-edited.png.
        replace: write `out` anew where it exists.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        back: with a CycleGAN: from the target to the source.

    Examples:
        descend edit runs/digits three.png --class 8 --guidance 3 --strength 0.6 --out eight.png
        descend edit runs/scenes scene.png --prompt "a red circle" --mask hole.png --out filled.png
        descend edit runs/cyclegan photo.png --out painting.png
    """
    use_code(code)
    path = Path(out or f"{Path(image).stem}-edited.png")
    check_new_png(path, "--out", replace)
    if count < 1:
        raise Mistake(f"-n {count}: at least 1")
    found = edit(
        run, image, prompt, strength, mask, depth, label, guidance, steps, method, size, count, seed, checkpoint, back
    )
    write_png(path, lay_out(found), "--out", smallest=1)
    print(f"{len(found):,} {'image' if len(found) == 1 else 'images'}: {path}")
