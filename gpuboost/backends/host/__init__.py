"""What every backend does on the host: threads, scratch memory, small linear systems."""
