"""The suites of ``gpuboost bench``: modules with a ``SUITE`` or an ``EXPERIMENT``, and their parts."""
