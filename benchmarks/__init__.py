"""The suites behind ``gpuboost bench``: one file per suite, shipped as ``gpuboost.benchmarks``.

``quality.py`` and ``cpu_speed.py`` are suites; the other files are what suites share. A suite is a module with a
``SUITE``; its file name, with ``-`` for ``_``, is the name on the command line.
"""
