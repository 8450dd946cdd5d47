"""Worked examples of the family efficient-inference."""
