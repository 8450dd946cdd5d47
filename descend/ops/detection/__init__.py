"""Detection: grids, anchors, box codings and the assignment of objects to predictions."""
