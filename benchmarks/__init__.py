"""Benchmarks against other libraries, shipped as ``gpuboost.benchmarks`` and run by ``gpuboost bench``.

A suite is a module of ``suites`` with a ``SUITE`` or an ``EXPERIMENT``. Its file name, with ``-`` for ``_``, names it on
the command line.
"""
