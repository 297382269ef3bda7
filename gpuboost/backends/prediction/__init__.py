"""Prediction of finished models on the host: raw values to bins, bins to leaves, leaves to scores and contributions."""
