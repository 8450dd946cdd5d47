"""Graphs: read, written, checked, made of other things, cut into parts, batched and sampled."""
