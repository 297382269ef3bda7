"""Composition rules: which pieces may be combined, and with which verdict."""
