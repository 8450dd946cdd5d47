"""What detectors minimise: a criterion takes what a model found and the true objects."""
