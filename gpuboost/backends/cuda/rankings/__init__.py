"""Ranking losses on a device."""
