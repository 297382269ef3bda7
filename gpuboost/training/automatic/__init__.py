"""Rounds and learning rate that are chosen by the fit."""
