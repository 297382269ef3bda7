"""Predictions and contributions on a device."""
