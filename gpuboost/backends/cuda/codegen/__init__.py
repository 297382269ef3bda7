"""Translation of scalar Python formulas to CUDA C. Nothing here knows what a tree is."""
