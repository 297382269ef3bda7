"""Host side of all backends: threads, scratch memory, small linear systems."""
