"""Placement of a fit: its device, its backend and its shards."""
