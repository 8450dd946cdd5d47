"""preprocessor_config.json, both ways: our numbers and the fields of the public image processors.

    ViTImageProcessor        size {height, width}                       stretched
    DeiTImageProcessor       size {height, width}, crop_size            stretched, then the middle
    CLIPImageProcessor       size {shortest_edge}, crop_size            the shorter edge, then the middle; MobileNet
    ConvNextImageProcessor   size {shortest_edge: s}, crop_pct          s < 384: the shorter edge s / crop_pct, then the
                                                                        middle s × s; else stretched to s × s
    MobileViTImageProcessor  size {shortest_edge}, crop_size            blue, green, red; not standardized

    x̂ = (pixel · rescale_factor − image_mean) / image_std               pixel 0..255; ours has pixel / 255, so
    mean = image_mean / (255 · rescale_factor), std alike

A step of theirs that is not one of these is refused, never left out.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from descend.data.images.frame import BILINEAR
from descend.errors import Mistake

LONGEST = 65_536  # pixels of a side
WIDE = 384  # ConvNeXT cuts nothing off at this size and above
REFUSED = ("do_pad", "rescale_offset", "do_thumbnail", "do_align_long_axis")


def write_processor(
    image: tuple[int, int, int],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    edges: tuple[int, ...],
    resample: int,
    order: str,
) -> dict[str, Any]:
    """The fields of the processor that does the same."""
    channels, height, width = image
    kinds = {0: "ViTImageProcessor", 1: "CLIPImageProcessor", 2: "DeiTImageProcessor"}
    values: dict[str, Any] = {
        "image_processor_type": kinds[len(edges)] if order == "rgb" else "MobileViTImageProcessor",
        "do_resize": True,
        "size": {"height": height, "width": width},
        "resample": resample,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": any(mean) or any(s != 1 for s in std),
        "image_mean": list(mean),
        "image_std": list(std),
        "num_channels": channels,
    }
    if edges:
        size = {"shortest_edge": edges[0]} if len(edges) == 1 else {"height": edges[0], "width": edges[1]}
        values |= {"size": size, "do_center_crop": True, "crop_size": {"height": height, "width": width}}
        values["do_convert_rgb"] = channels == 3
    return values if order == "rgb" else {**values, "do_flip_channel_order": True}


def understood(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """image, mean, std, edges, resample and order of a file's fields; a mistake names what is missing or refused."""
    for name in REFUSED:
        if values.get(name):
            raise Mistake(f"{path}: {name} = {values[name]!r} is not supported; use a processor without it")
    if not values.get("do_resize", True):
        raise Mistake(f"{path}: do_resize is false, so images have no common size; set it, with size")
    try:
        (height, width), edges = _sizes(values)
        if wrong := [side for side in (height, width, *edges) if not 1 <= side <= LONGEST]:
            raise ValueError(f"a side of {wrong[0]:.6g} pixels; sides are 1 to {LONGEST:,}")
        mean, std = read_scale(values)
        channels = int(values.get("num_channels", len(mean)))
        if len(mean) != channels or len(std) != channels:
            raise Mistake(f"{path}: {len(mean)} means and {len(std)} deviations for {channels} channels; give one each")
        return {
            "image": (channels, height, width),
            "mean": mean,
            "std": std,
            "edges": edges,
            "resample": int(values.get("resample", BILINEAR)),
            "order": "bgr" if values.get("do_flip_channel_order") else "rgb",
        }
    except KeyError as error:
        raise Mistake(f"{path} lacks {error}; it is not the file of an image classifier") from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Mistake(f"{path}: {error}; correct the file") from None


def _sizes(values: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, ...]]:
    """(height, width) of the model's images, and `edges` as `Frame` has them."""
    size, crop = values["size"], values.get("crop_size")
    if isinstance(size, bool) or isinstance(crop, bool):
        raise ValueError("size and crop_size are numbers or objects")
    cuts = values.get("do_center_crop", crop is not None)
    kind = read_kind(values)
    if isinstance(size, int):  # files of older versions
        size = {"shortest_edge": size} if cuts or kind.startswith("ConvNext") else {"height": size, "width": size}
    if kind.startswith("ConvNext"):
        side = int(size["shortest_edge"])
        return (side, side), (int(side / values.get("crop_pct", 224 / 256)),) if side < WIDE else ()
    if not cuts:
        return (int(size["height"]), int(size["width"])), ()
    if isinstance(crop, int):
        crop = {"height": crop, "width": crop}
    if crop is None:
        raise KeyError("crop_size")
    edges = (size["shortest_edge"],) if "shortest_edge" in size else (size["height"], size["width"])
    return (int(crop["height"]), int(crop["width"])), tuple(map(int, edges))


def read_kind(values: dict[str, Any]) -> str:
    return str(values.get("image_processor_type") or values.get("feature_extractor_type") or "")


def read_scale(values: dict[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """μ and σ for pixels in 0..1."""
    factor = 255 * values.get("rescale_factor", 1 / 255) if values.get("do_rescale", True) else 255.0
    if abs(factor - 1) < 1e-9:
        factor = 1.0
    if not values.get("do_normalize", not read_kind(values).startswith("MobileViT")):
        channels = int(values.get("num_channels", 3))
        return (0.0,) * channels, (1 / factor,) * channels
    found = [values["image_mean"], values["image_std"]]
    channels = int(values.get("num_channels", 3))
    lists = [[v] * channels if isinstance(v, int | float) else list(v) for v in found]
    mean, std = (tuple(float(v) / factor for v in numbers) for numbers in lists)
    if not all(math.isfinite(m) for m in mean):
        raise ValueError(f"image_mean {list(mean)} must be finite")
    if not all(0 < s < math.inf for s in std):
        raise ValueError(f"image_std {list(std)} must be above 0")
    return mean, std
