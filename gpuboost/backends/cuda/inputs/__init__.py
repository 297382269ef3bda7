"""Matrices of users on a device, before they are binned."""
