"""Worked examples of the family autodiff."""
