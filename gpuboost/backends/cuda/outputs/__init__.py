"""One tree for several outputs on a device."""
