"""The definition in NumPy: slow and readable. Every other backend is tested against it."""
