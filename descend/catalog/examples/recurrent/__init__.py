"""Worked examples of the family recurrent."""
