"""Energies with a latent variable, and what limits it."""
