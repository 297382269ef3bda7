"""Base learners other than trees: smooth terms and linear leaves."""
