"""Composition rules: verdicts of theory on combinations of pieces."""
