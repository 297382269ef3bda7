"""The machinery of a suite: cases, adapters of the libraries, timed processes, results, reports."""
