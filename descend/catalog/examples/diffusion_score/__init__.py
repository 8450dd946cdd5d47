"""Worked examples of the family diffusion-score."""
