"""What follows a fit: history, progress, early stopping, checkpoints."""
