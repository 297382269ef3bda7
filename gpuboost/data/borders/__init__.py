"""Borders of the bins of a feature: how they are chosen."""
