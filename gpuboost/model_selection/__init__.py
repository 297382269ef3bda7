"""Many fits of one estimator: cross-validation, chains, posterior ensembles."""
