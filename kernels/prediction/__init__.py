"""Scores, leaves and feature contributions of finished trees."""
