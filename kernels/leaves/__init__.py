"""Leaf values, line searches and the sums that they need."""
