"""A small model on this machine, so that everything can be tried with no key."""
