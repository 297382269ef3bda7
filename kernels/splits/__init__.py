"""The search for the best split of a node or of a level."""
