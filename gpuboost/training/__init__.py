"""A fit, from the arguments of an estimator to a finished model."""
