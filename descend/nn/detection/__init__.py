"""Layers of detectors: blocks, necks and heads."""
