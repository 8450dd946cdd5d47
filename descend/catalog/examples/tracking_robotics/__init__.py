"""Worked examples of tracking and robotics."""
