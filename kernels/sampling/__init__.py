"""Row sampling, feature subsets and the gathering of sampled rows."""
