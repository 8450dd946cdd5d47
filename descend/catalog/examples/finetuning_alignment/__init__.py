"""Worked examples of the family finetuning-alignment."""
