"""Tracking: which detection of this frame is which object of the frames before."""
