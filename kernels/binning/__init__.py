"""Raw values to bins."""
