"""The inner loops: one file per verb of the backend protocol, and nothing that imports gpuboost."""
