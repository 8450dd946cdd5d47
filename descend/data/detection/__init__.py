"""Images with objects: boxes, classes, masks; read, written, checked, framed, augmented, batched."""
