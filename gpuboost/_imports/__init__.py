"""The rest of ``import gpuboost``: old names of modules, and a warning of another distribution of that name."""
