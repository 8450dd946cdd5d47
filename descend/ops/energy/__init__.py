"""Energies: Gibbs distributions, inference by descent, and the score."""
