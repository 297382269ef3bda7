"""Metrics of scores that a device computes: what it is asked, and the areas under curves that it has to find."""
