"""Changes one thing in the library at a time and looks whether a test notices: `python -m mutation`."""
