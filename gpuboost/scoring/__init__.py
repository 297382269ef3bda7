"""Metrics and predictions that a device computes from scores in its memory, and their exact sums and areas."""
