"""Worked examples of the family graph-networks."""
