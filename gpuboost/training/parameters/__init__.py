"""The recipe of an estimator's parameters: each one checked, ``"auto"`` and None replaced, and all put together."""
