"""The GPU. Nothing here imports cupy before a device is asked for; only ``runtime`` talks to it."""
