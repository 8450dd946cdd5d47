"""Worked examples of sinusoidal-positional-encoding, sinusoidal-encoding-analysis and position-encoding-labs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.nn.attention.positions import AppendPositions, IndexPositions
from descend.ops.attention import positions
from descend.ops.attention.positions import band, shift, sinusoidal, wavelengths
from descend.ops.attention.rotary import frequencies


def encoding(t: list[int], width: int) -> Tensor:
    """p (len(t), d) in float64."""
    return sinusoidal(real(t), width)


def shift_error(k: int, width: int, count: int) -> float:
    """max_t |M_k p_t − p_{t+k}| over the first positions."""
    p = encoding(list(range(count + k)), width)
    return float((p[:count] @ shift(k, width).T - p[k:]).abs().max())


# The encoding


def binary_table(i: Inputs) -> Inputs:
    bits = positions.binary(torch.tensor(i["numbers"]), 4)
    table = {str(n): "".join(map(str, row)) for n, row in zip(i["numbers"], bits.tolist(), strict=True)}
    return {
        "table": table,
        "frequencies": [positions.bit_frequency(bit) for bit in range(3)],
        "table_equal": all(int(text, 2) == int(n) for n, text in table.items()),
    }


def dln_wavelengths(i: Inputs) -> Inputs:
    waves = wavelengths(frequencies(i["D"], i["base"], torch.float64))
    ratio = waves[1:] / waves[:-1]
    return {
        "smallest": waves[0],
        "largest": waves[-1],
        "largest_over_2pi": waves[-1] / (2 * math.pi),
        "ratio": ratio[0],
        "ratio_constant": torch.allclose(ratio, ratio[:1].expand_as(ratio)),
    }


def dln_offset(i: Inputs) -> Inputs:
    p = encoding([3, 3 + i["k"]], i["D"])
    return {
        "max_error_below_1e-12": shift_error(i["k"], i["D"], 200) < 1e-12,
        "PE_3_first4": p[0, :4],
        "PE_10_first4": p[1, :4],
    }


def right_columns(i: Inputs) -> Inputs:
    p = encoding(list(range(1000)), i["D"])
    return {"last4": p[i["pos"], -4:], "min": p.min(), "max": p.max()}


def mf_encoding(i: Inputs) -> Inputs:
    d = i["d_model"]
    return {
        "PE_pos3": encoding([i["pos"]], d)[0],
        "max_abs_over_1000_positions": encoding(list(range(1000)), d).abs().max(),
        "shift_property_holds": shift_error(i["shift"], d, 1) < 1e-12,
    }


def patches(i: Inputs) -> Inputs:
    p = encoding(list(range(i["n"])), i["d"])
    norms = p.square().sum(-1)
    assert torch.allclose(norms, norms[:1].expand_as(norms))
    return {"PE_0_first4": p[0, :4], "PE_1_first4": p[1, :4], "row_norm_squared": round(float(norms[0]), 9)}


def detr_indices(i: Inputs) -> Inputs:
    p = encoding(list(range(i["tokens"])), i["d"])
    return {"i_max": len(p) - 1, "j_max": len(frequencies(p.shape[1])) - 1}


def s940_encoding(i: Inputs) -> Inputs:
    return {"PE": encoding(i["pos"], i["d_model"]), "rotation_matrix": shift(i["k"], i["d_model"])}


def vom_row(i: Inputs) -> Inputs:
    return {"p": encoding([i["t"]], i["d"])[0]}


def vom_p5(i: Inputs) -> Inputs:
    return {"p5": encoding([i["t"]], i["d"])[0]}


def vom_neighbours(i: Inputs) -> Inputs:
    p5, p6 = encoding(i["t"], i["d"])
    apart = (p6 - p5).abs()
    return {"p5_dims0_3": p5[:4], "p6_dims0_3": p6[:4], "diff_dims0_3": apart[:4], "diff_dims4_7": apart[4:]}


def from_one(i: Inputs) -> Inputs:
    first, last = map(int, i["i"].split(".."))
    t = torch.arange(first, last + 1, dtype=torch.float64)
    return {"equal": torch.allclose(positions.sinusoidal_from_one(t, i["d"]), sinusoidal(t - 1, i["d"]), atol=1e-12)}


# Analysis


def vom_frequencies(i: Inputs) -> Inputs:
    return {"omega": frequencies(i["d"], i["base"], torch.float64)}


def vom_wavelengths(i: Inputs) -> Inputs:
    return {"wavelength": wavelengths(real(i["omega"]))}


def five_and_fifty(i: Inputs) -> Inputs:
    p5, p50, p500, p6 = band(real([*i["t"], 6]), i["omega"])
    apart = float((p5 - p50).norm())
    return {
        "nearly_identical_5_50": apart < 0.1,  # a twentieth of the circle's diameter
        "p5": p5,
        "p50": p50,
        "p500": p500,
        "distance_5_50": apart,
        "distance_5_500": (p5 - p500).norm(),
        "distance_5_6": (p5 - p6).norm(),
    }


def heatmap(i: Inputs) -> Inputs:
    p = sinusoidal(torch.arange(i["positions"], dtype=torch.float64), i["d"], i["base"])
    apart = torch.pdist(p)
    return {
        "shape": p.shape,
        "max": p.max(),
        "min": p.min(),
        "all_rows_unique": bool(apart.min() > 0),
        "min_row_distance": apart.min(),
        "std_over_positions_first_and_last_column": p.std(0, correction=0)[[0, -1]],
    }


def sine_ambiguity(i: Inputs) -> Inputs:
    pairs = band(real(i["deg"]), math.pi / 180)
    return {"sin": pairs[:, 0], "cos30": pairs[0, 1], "cos150": pairs[1, 1]}


def vom_rotation(i: Inputs) -> Inputs:
    k, d = i["k"], i["d"]
    dots = [float(a @ b) for a, b in (encoding([t, t + k], d) for t in (0, 10, 100))]
    assert all(math.isclose(dot, positions.offset_product(k, d)) for dot in dots)
    return {
        "rotation_exists": shift_error(k, d, 200) < 1e-12,
        "p_t_dot_p_t+3_for_t_0_10_100": dots,
        "norm_squared_p_t": encoding([7], d).square().sum(),
    }


def slowest(i: Inputs) -> Inputs:
    d = i["d"]
    limits = {f"limit_{base}": float(wavelengths(real(1 / base))) for base in i["bases"][:2]}
    return {
        "fastest": wavelengths(frequencies(d, dtype=torch.float64))[0],
        **{f"slowest_{base}": positions.slowest_wavelength(d, base) for base in i["bases"]},
        **limits,
        "cycles_2048_over_628": positions.cycles(2048, limits["limit_100"]),
    }


def vom_cycles(i: Inputs) -> Inputs:
    return {"cycles": positions.cycles(i["length"], i["wavelength"])}


# Rejected codes


def relative_steps(i: Inputs) -> Inputs:
    return {"percent": [100 * positions.relative_step(a, b) for a, b in i["pairs"]]}


def append_index(i: Inputs) -> Inputs:
    return {"d_new": AppendPositions(IndexPositions())(torch.zeros(1, 3, i["d"])).shape[-1]}


EXAMPLES: dict[str, Compute] = {
    "DLN-PositionalEncoding-binary": binary_table,
    "DLN-PositionalEncoding-wavelengths": dln_wavelengths,
    "DLN-PositionalEncoding-linear-offset": dln_offset,
    "DLN-PositionalEncoding-right-columns": right_columns,
    "MF-18.3.1-pe": mf_encoding,
    "MF-27.4.2-pe": patches,
    "MF-28.2.3-pe-index": detr_indices,
    "S940-5.3-sinusoidal-pe": s940_encoding,
    "VOM-11.3-p0": vom_row,
    "VOM-11.3-p1": vom_row,
    "VOM-11.3-p2": vom_row,
    "VOM-11.3-p3": vom_row,
    "VOM-11.3.6-p5": vom_p5,
    "VOM-11.3.6-p5-p6": vom_neighbours,
    "VOM-12.3.1-one-based-pe": from_one,
    "VOM-11.3-frequencies": vom_frequencies,
    "VOM-11.3.1-wavelengths": vom_wavelengths,
    "VOM-11.3.1-pos5-pos50": five_and_fifty,
    "VOM-11.3.2-heatmap": heatmap,
    "VOM-11.3.3-sine-ambiguity": sine_ambiguity,
    "VOM-11.3.4-rotation": vom_rotation,
    "VOM-11.3.5-slowest-wavelength": slowest,
    "VOM-11.3.5-cycles": vom_cycles,
    "VOM-11.1-relative-step": relative_steps,
    "VOM-11.1-append-index": append_index,
}

SET_ASIDE: dict[str, str] = {
    "S940-5.3-sinusoidal-pe:max_abs_error": "a rounding error of the recomputation, no number of the book",
}
