"""Diffusion: noise schedules, forward kernels, what a network may predict, guidance, and SDEs."""
