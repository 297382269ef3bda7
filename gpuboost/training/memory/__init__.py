"""Device memory of a training, before it begins."""
