"""Worked examples of the family math."""
