"""Worked examples of the family scaling-laws."""
