"""Benchmarks against other libraries, shipped as ``gpuboost.benchmarks`` and run by ``gpuboost bench``.

A suite is a module of ``suites`` with a ``SUITE`` or an ``EXPERIMENT``. Its file name, with ``-`` for ``_``, is its
name on the command line.
"""
