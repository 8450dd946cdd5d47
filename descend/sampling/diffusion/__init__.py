"""Samplers of diffusion models over a callable: they know no network."""
