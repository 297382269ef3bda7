"""Ranking losses on the CPU."""
