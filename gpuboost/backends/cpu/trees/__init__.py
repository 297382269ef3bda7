"""Parts of a tree on the CPU: its histograms, the search for splits, its nodes and their rows."""
