"""Histograms of gradients and hessians, as exact integer sums."""
