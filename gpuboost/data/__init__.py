"""Input data for training: tables, files, columns, cuts, bins, weights."""
