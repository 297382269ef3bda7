"""Drawing of rows, their weights and the noise on their gradients, on the CPU."""
