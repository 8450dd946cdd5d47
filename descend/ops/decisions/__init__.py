"""Decisions: processes with finitely many states and actions, what their states are worth, and walks through them."""
