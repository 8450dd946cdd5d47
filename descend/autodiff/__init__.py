"""Differentiation, written out: primitives, graphs, both modes, and the backward pass of a whole transformer."""
