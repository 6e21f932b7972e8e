"""Use cases: one function each, in one transaction."""
