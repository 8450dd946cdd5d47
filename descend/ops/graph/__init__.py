"""Graphs: who is linked with whom, what nodes hear from their neighbours, and what the links alone tell."""
