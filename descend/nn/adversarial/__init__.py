"""Layers that adversarial networks have of their own."""
