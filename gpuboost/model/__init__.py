"""Model files and feature importance."""
