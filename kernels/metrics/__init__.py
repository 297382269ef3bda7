"""Metrics of scores that stay on a device."""
