"""Checks on layers and units: dead, saturated, gradients that vanish or explode on their way back.

δˡ⁻¹ = (Wˡ)ᵀ δˡ ⊙ g'(zˡ⁻¹):  a product of as many factors as there are layers
"""

from __future__ import annotations

import math
from statistics import median

from descend.diagnosis.signs import Finding, LayerSigns, Signs

DEAD = 0.5  # half the units of a layer gone: healthy ReLU layers lose a tenth or two
SATURATED = 0.6  # healthy tanh networks have up to a third of their outputs near the ends
GONE = 0.9  # a layer that is practically lost is reported even where the loss has fallen
VANISHED = 1e-3  # of the signal arrives at the first layer; with good weights it is about the same everywhere
EXPLODED = 100.0  # times the signal of the last layer arrives at the first
GROWN = 30.0  # times the first gradient norms; noise and warm-up stay below ten
DEEP = 3  # layers below which there is no product to speak of


def shorten_name(layer: str) -> str:
    return layer.removeprefix("model.")


def detect_dead_relu(signs: Signs) -> Finding | None:
    """Units that are 0 for every example: no gradient will ever reach their weights."""
    found = [units for units in signs.units if units.kind == "relu" and units.dead > (DEAD if signs.ill else GONE)]
    if not found:
        return None
    listed = ", ".join(f"{units.dead:.0%} of {units.count} after {shorten_name(units.name)}" for units in found)
    return Finding(
        "dead-relu",
        "fault" if max(units.dead for units in found) > GONE else "warning",
        f"units that are 0 for every example: {listed}",
        "a = max(0, z): ∂a/∂z = 0 for z < 0, so a unit with z < 0 everywhere gets no gradient and stays dead",
        f"initial biases of 0 and standardized inputs; {signs.lower('optim.lr', 0.3)}; "
        + ("--model.activations tanh" if "model.activations" in signs.values else "a leaky ReLU or GELU"),
    )


def detect_saturation(signs: Signs) -> Finding | None:
    """Sigmoid or tanh outputs that lie at the ends, where the slope is almost 0."""
    found = [
        units for units in signs.units if units.kind != "relu" and units.saturated > (SATURATED if signs.ill else GONE)
    ]
    if not found:
        return None
    listed = ", ".join(f"{units.saturated:.0%} after {shorten_name(units.name)} ({units.kind})" for units in found)
    return Finding(
        "saturated-units",
        "fault" if max(units.saturated for units in found) > GONE else "warning",
        f"outputs beyond 0.97 of their range: {listed}",
        "σ'(z) = σ(z)(1 − σ(z)) ≤ 0.03 and tanh'(z) = 1 − tanh²(z) ≤ 0.06 there: the gradient is cut to that",
        "smaller initial weights (standard deviation √(1/n_in)) and standardized inputs"
        + ("; --model.activations relu" if "model.activations" in signs.values else "")
        + f"; {signs.lower('optim.lr', 0.3)}",
    )


def take_signals(signs: Signs) -> list[LayerSigns]:
    """The layers at whose output a gradient arrives."""
    return [layer for layer in signs.layers if math.isfinite(layer.signal)]


def list_signals(layers: list[LayerSigns]) -> str:
    """‖δ‖ of at most six layers, first and last among them."""
    step = max(1, math.ceil(len(layers) / 5))
    shown = [*layers[:-1:step], layers[-1]]
    return ", ".join(f"{shorten_name(layer.name)} {layer.signal:.1e}" for layer in shown)


def detect_vanishing(signs: Signs) -> Finding | None:
    """The gradient at the first layer is nothing beside the gradient at the last."""
    layers = take_signals(signs)
    if not signs.ill or len(layers) < DEEP or layers[-1].signal == 0:
        return None
    if layers[0].signal > VANISHED * layers[-1].signal:
        return None
    share = layers[0].signal / layers[-1].signal
    factor = share ** (1 / (len(layers) - 1))
    return Finding(
        "vanishing-gradient",
        "fault",
        f"‖∂L/∂z‖ by layer: {list_signals(layers)}; {share:.1e} of it arrives, a factor of {factor:.2g} per layer",
        "‖δˡ⁻¹‖ ≤ ‖Wˡ‖ · max|g'| · ‖δˡ‖, and max|σ'| = 1/4: k layers multiply k such factors",
        ("--model.activations relu, " if "model.activations" in signs.values else "")
        + "residual connections or normalization, initial weights of std √(2/n_in) for ReLU, or fewer layers",
    )


def detect_exploding(signs: Signs) -> Finding | None:
    """The gradient grows from layer to layer on its way back."""
    layers = take_signals(signs)
    if not signs.ill or len(layers) < DEEP or not layers[0].signal > EXPLODED * layers[-1].signal > 0:
        return None
    times = layers[0].signal / layers[-1].signal
    factor = times ** (1 / (len(layers) - 1))
    return Finding(
        "exploding-gradient",
        "fault",
        f"‖∂L/∂z‖ by layer: {list_signals(layers)}; it grows {times:.1e} times, a factor of {factor:.2g} per layer",
        "δˡ⁻¹ = (Wˡ)ᵀ δˡ ⊙ g'(zˡ⁻¹): weights of standard deviation s multiply by about s √(n/2) per layer (ReLU)",
        "--clip 1.0 bounds the step; initial weights of std √(2/n_in), or normalization, remove the cause",
    )


def detect_growing_norms(signs: Signs) -> Finding | None:
    """Where the run clips, its log has the norm of the whole gradient: it grows while the loss does not fall."""
    quarter = len(signs.norms) // 4
    if quarter < 2:
        return None
    first, last = (median(v for _, v in piece) for piece in (signs.norms[:quarter], signs.norms[-quarter:]))
    if not last > GROWN * first > 0:
        return None
    clip = signs.value("clip") or 0.0
    return Finding(
        "exploding-gradient",
        "fault" if last > GROWN * max(clip, 1.0) else "warning",
        f"the gradient norm grew from {first:.3g} to {last:.3g}; it is clipped to {clip:g}",
        "g ← g · min(1, c / ‖g‖): with ‖g‖ far above c only the direction of one batch is left",
        f"{signs.lower('optim.lr', 0.3)}; descend doctor RUN shows the layer",
    )
