"""The CUDA backend. CuPy is imported when a device is first requested; ``device.runtime`` is its only user."""
