"""Worked examples of detection, a file for each way to detect."""
