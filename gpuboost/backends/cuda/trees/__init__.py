"""Growth of trees by kernels of a device: plans, arenas, and the nodes that come back."""
