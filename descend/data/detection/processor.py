"""preprocessor_config.json of detectors, both ways: our framing and the words of the public image processors.

    DetrImageProcessor      size {shortest_edge, longest_edge}, do_pad            ShortestEdge
    YolosImageProcessor     the same; sides are cut to multiples of 16            ShortestEdge(multiple=16)
    DetrImageProcessor      size {max_height, max_width}, pad_size                Letterbox
    RTDetrImageProcessor    size {height, width}                                  Stretch; OWL-ViT
    Owlv2ImageProcessor     do_pad to a square, then size {height, width}         Letterbox on a black ground

What the first three lay around an image is 0 after standardizing: the mean colour. A Letterbox that does not lie in the
upper left corner has a word of our own, `pad_at`. Files of older versions have a plain `size` and `max_size`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.data.detection.framing import Framing, Letterbox, ShortestEdge, Stretch
from descend.data.images.frame import BILINEAR
from descend.data.images.processor import read_kind, read_scale
from descend.errors import Mistake

YOLOS = 16  # pixels of a patch
BLACK = (0.0, 0.0, 0.0)
LONGEST = 16384
REFUSED = ("do_center_crop", "rescale_offset", "do_thumbnail", "do_align_long_axis", "do_flip_channel_order")
SQUARE = ("Owlv2", "OWLv2")


def write_framing(framing: Framing, ground: tuple[float, ...]) -> dict[str, Any]:
    """The fields that say how an image is brought to size."""
    if isinstance(framing, ShortestEdge):
        kind = "YolosImageProcessor" if framing.multiple > 1 else "DetrImageProcessor"
        size = {"shortest_edge": framing.shortest, "longest_edge": framing.longest}
        return {"image_processor_type": kind, "size": size, "do_pad": True}
    if isinstance(framing, Stretch):
        size = {"height": framing.height, "width": framing.width}
        return {"image_processor_type": "RTDetrImageProcessor", "size": size, "do_pad": False}
    if not isinstance(framing, Letterbox):
        raise ValueError(f"{framing} has no public words")
    side = framing.side
    square = {"height": side, "width": side}
    if ground:
        return {"image_processor_type": "Owlv2ImageProcessor", "size": square, "do_pad": True}
    most = {"max_height": side, "max_width": side}
    values = {"image_processor_type": "DetrImageProcessor", "size": most, "do_pad": True, "pad_size": square}
    return values if not framing.at else {**values, "pad_at": framing.at}


def write_values(
    framing: Framing, mean: tuple[float, ...], std: tuple[float, ...], ground: tuple[float, ...], resample: int
) -> dict[str, Any]:
    """All fields of the processor that does the same."""
    return {
        **write_framing(framing, ground),
        "do_resize": True,
        "resample": resample,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": any(mean) or any(s != 1 for s in std),
        "image_mean": list(mean),
        "image_std": list(std),
        "do_convert_annotations": True,
        "format": "coco_detection",
    }


def read_values(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """framing, mean, std, ground and resample of a file's fields; a mistake names what is missing or refused."""
    for name in REFUSED:
        if values.get(name):
            raise Mistake(f"{path}: {name} = {values[name]!r} is not supported; use a processor without it")
    if not values.get("do_resize", True):
        raise Mistake(f"{path}: do_resize is false, so images have no common size; set it, with size")
    try:
        kind = read_kind(values)
        framing = read_framing(values, kind)
        plain = "do_normalize" not in values and kind.startswith("RTDetr")
        mean, std = read_scale({"do_normalize": False, **values} if plain else values)
        if len(mean) != 3 or len(std) != 3:
            raise ValueError(f"{len(mean)} means and {len(std)} deviations; a detector has 3 of each")
        ground = BLACK if kind.startswith(SQUARE) else ()
        resample = int(values.get("resample", BILINEAR))
        if resample not in (0, 1, 2, 3):
            raise ValueError(f"resample {resample}; 0 to 3 are known")
        return {"framing": framing, "mean": mean, "std": std, "ground": ground, "resample": resample}
    except KeyError as error:
        raise Mistake(f"{path} lacks {error}; it is not the file of a detector") from None
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise Mistake(f"{path}: {error}; correct the file") from None


def read_framing(values: dict[str, Any], kind: str) -> Framing:
    """How an image is brought to size."""
    size = values["size"]
    if isinstance(size, int) and not isinstance(size, bool):  # files of older versions
        size = {"shortest_edge": size, "longest_edge": values.get("max_size", 1333)}
    if not isinstance(size, dict):
        raise ValueError(f"size is {size!r}, not an object")
    if "shortest_edge" in size:
        longest = size.get("longest_edge", values.get("max_size", 1333))
        multiple = YOLOS if kind.startswith("Yolos") else 1
        return ShortestEdge(check_side(size["shortest_edge"]), check_side(longest), multiple)
    if "max_height" in size:
        side, other = check_side(size["max_height"]), check_side(size["max_width"])
        ground = values.get("pad_size") or {"height": side, "width": side}
        if {side, other, ground["height"], ground["width"]} != {side}:
            raise ValueError("max_height, max_width and pad_size differ; only squares are supported")
        return Letterbox(side, float(values.get("pad_at", 0.0)))
    height, width = check_side(size["height"]), check_side(size["width"])
    if kind.startswith(SQUARE) and values.get("do_pad", True):
        if height != width:
            raise ValueError(f"size {height}×{width}; only squares are supported")
        return Letterbox(height)
    return Stretch(height, width)


def check_side(side: Any) -> int:
    """A whole number of pixels."""
    if isinstance(side, bool) or int(side) != side or not 1 <= side <= LONGEST:
        raise ValueError(f"a side of {side!r} pixels; sides are whole numbers from 1 to {LONGEST:,}")
    return int(side)
