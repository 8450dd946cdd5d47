"""Worked examples of patch-embedding and vit: counts, read off the library's own modules."""

from __future__ import annotations

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs
from descend.models.vit import IMAGENET, SIZES, ViTConfig, ViTForImageClassification
from descend.nn.image_tokens import ImageTokens
from descend.nn.patches import PatchEmbedding, grid_of, patchify
from descend.theory.window_cost import pairs
from descend.weights.labels import Labels


def patch_shape(height: int, width: int, channels: int, patch: int) -> tuple[int, int]:
    """N and the length of a patch, of an image that is really cut."""
    _, n, length = patchify(torch.empty(1, channels, height, width, device="meta"), patch).shape
    return n, length


def tokens(side: int, channels: int, patch: int, width: int) -> tuple[int, int]:
    """The sequence that the encoder reads: (1 + N, d)."""
    with torch.device("meta"):
        _, t, d = ImageTokens(channels, side, patch, width)(torch.empty(1, channels, side, side)).shape
    return t, d


def on_meta(config: ViTConfig) -> nn.Module:
    with torch.device("meta"):
        return ViTForImageClassification(config)


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def ratio(i: Inputs) -> float:
    """Attention entries of pixel tokens over those of patch tokens."""
    rows, columns = grid_of(i["H"], i["W"], i["P"])
    return pairs(i["H"], i["W"]) / pairs(rows, columns)


def dln_patches(i: Inputs) -> Inputs:
    n, length = patch_shape(i["H"], i["W"], i["C"], i["P"])
    return {
        "N": n,
        "patch_dim": length,
        "tokens_with_cls": tokens(i["H"], i["C"], i["P"], 768)[0],
        "pixel_tokens": patch_shape(i["H"], i["W"], i["C"], 1)[0],
        "attention_matrix_ratio_pixels_over_patches": ratio(i),
        "ViT_B16_params_1000_classes": count(on_meta(SIZES["vit-base"])),
        "ViT_L16_params_1000_classes": count(on_meta(SIZES["vit-large"])),
    }


def mf_patches(i: Inputs) -> Inputs:
    n, length = patch_shape(i["H"], i["W"], i["C"], i["P"])
    return {
        "N": n,
        "grid": grid_of(i["H"], i["W"], i["P"])[0],
        "pixels": patch_shape(i["H"], i["W"], i["C"], 1)[0],
        "patch_vector_length": length,
        "sequence_length_with_cls": tokens(i["H"], i["C"], i["P"], 768)[0],
        "attention_entries_ratio_pixel_to_patch": ratio(i),
    }


def variant(i: Inputs) -> Inputs:
    """The literal count leaves out the biases of the attention and the norm after the last block."""
    width, labels = i["d_model"], Labels(tuple(map(str, range(i["classes"]))))
    config = ViTConfig(3, i["resolution"], i["P"], width, i["L"], i["heads"], i["mlp_ratio"] * width, labels=labels)
    model, wide = on_meta(config), on_meta(ViTConfig(**{**vars(config), "patch": 32}))
    left_out = [p for name, p in model.named_parameters() if ".attn." in name and name.endswith("bias")]
    left_out += list(model.get_submodule("norm").parameters())
    return {
        "params": count(model),
        "params_without_head": count(model) - count(model.get_submodule("head")),
        "params_literal_no_attention_bias_no_final_LN": count(model) - sum(p.numel() for p in left_out),
        "params_with_32x32_patches": count(wide),
    }


def per_side(i: Inputs) -> Inputs:
    return {
        "per_side": grid_of(i["H"], i["W"], i["P"])[0],
        "patches": patch_shape(i["H"], i["W"], 3, i["P"])[0],
    }


def patch_vector(i: Inputs) -> Inputs:
    side = 224  # of the section's own example
    n, length = patch_shape(side, side, i["C"], i["P"])
    with torch.device("meta"):
        embedding = PatchEmbedding(i["C"], i["d"], i["P"])
    config = ViTConfig(i["C"], side, i["P"], i["d"], labels=IMAGENET)
    return {
        "patch_dim": length,
        "x_flat": [n, length],
        "patch_embedding_params": count(embedding),
        "vit_b16_params_1000_classes": count(on_meta(config)),
    }


def sequence(i: Inputs) -> Inputs:
    side = int(i["N"] ** 0.5)
    return {"S": list(tokens(side, 1, 1, i["d"]))}


def dld_patches(i: Inputs) -> Inputs:
    height, width, channels = i["image"]
    n, length = patch_shape(height, width, channels, i["patch"][0])
    t = tokens(height, channels, i["patch"][0], 768)[0]
    return {"patches": n, "patch_dim": length, "tokens_with_cls": t, "attention_entries_per_head": pairs(1, t)}


def halve_patches(i: Inputs) -> Inputs:
    grids = [grid_of(i["image"], i["image"], p) for p in i["patch"]]
    return {
        "N": [patch_shape(i["image"], i["image"], 3, p)[0] for p in i["patch"]],
        "N2": [pairs(rows, columns) for rows, columns in grids],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-ViT-patches": dln_patches,
    "MF-37.3.1-patches": mf_patches,
    "MF-37.9-ViT-Base": variant,
    "MF-37.9-ViT-Large": variant,
    "MF-37.9-ViT-Huge": variant,
    "MF-27.1.1-patches": per_side,
    "MF-27.4.1-patch-vector": patch_vector,
    "MF-27.4.3-sequence": sequence,
    "DLD-8.6-vit-patches": dld_patches,
    "DLD-8.6-attention-n2": halve_patches,
}

SET_ASIDE: dict[str, str] = {}
