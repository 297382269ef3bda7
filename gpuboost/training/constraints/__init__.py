"""Parameters of single columns: monotonic and interaction constraints."""
