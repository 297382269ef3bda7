"""Definitions shared by all backends: integer sums, random numbers, sampling probabilities, leaf values."""
