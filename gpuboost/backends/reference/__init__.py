"""The definition in NumPy: slow, readable, and what every other backend is tested against."""
