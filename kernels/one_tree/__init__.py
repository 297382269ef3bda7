"""One tree for several outputs on the CPU."""
