"""Twenty colours that stay apart, for light and for dark pages.

Chosen so that the smallest distance between two of them in OKLab is large: 0.12 as most people see them, 0.07 with
protanopia or deuteranopia. A distance of 0.02 is just seen when two colours touch. Blue, orange and grey are given, the
others found by exchanging one at a time for the colour that is farthest from all the rest. A colour's light and dark
form have the same number.
"""

from __future__ import annotations

# fmt: off
LIGHT = (
    "#2b6cd8", "#d66820", "#0fa569", "#b42db4", "#d2003c", "#6b7280", "#5ab4c3", "#c3a500", "#5a0078", "#2d6900",
    "#f07896", "#0000b4", "#78d278", "#871e4b", "#a578c3", "#4b96ff", "#3c3c0f", "#c3a5ff", "#3c4b78", "#4b00ff",
)
DARK = (
    "#6ea3ff", "#f39b5c", "#00d296", "#b41e87", "#e10000", "#9aa4b5", "#87ffe1", "#ffe1a5", "#873cc3", "#d2d23c",
    "#e16900", "#4b78f0", "#b4ff00", "#ff0078", "#c369c3", "#96d2ff", "#87694b", "#f0b4c3", "#1e9687", "#4b3cff",
)
# fmt: on
PALETTE = len(LIGHT)
"""Colours of series: c0, c1, .. Modulo this number they begin again."""


def read_colour(colour: str) -> tuple[float, float, float]:
    """ "#ff0000" -> (1, 0, 0)"""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue
