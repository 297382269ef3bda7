"""From what people hold to what is learned from: tables, files, columns, cuts, bins, weights."""
