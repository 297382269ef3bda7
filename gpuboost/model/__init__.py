"""What can be known of a model without running it: its file, and how much each feature matters."""
