"""Splits that all nodes of a level of an oblivious tree share."""
