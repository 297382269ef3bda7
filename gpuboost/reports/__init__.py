"""Reports of a finished fit: timings, sampling rates, edges, guarantees."""
