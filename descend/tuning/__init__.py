"""The search for good values of a recipe: what may vary, what to try next, and the study that runs it."""
