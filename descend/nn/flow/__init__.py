"""Invertible layers with known log-determinants: linear, coupling, autoregressive, continuous."""
