"""Where a fit runs: its device, backend and shards."""
