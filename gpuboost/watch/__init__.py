"""Built-in callbacks: history, progress, early stopping, checkpoints."""
