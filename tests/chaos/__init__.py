"""Faults at random against a running suite, and the invariants that must hold afterwards: ``python -m tests.chaos --help``."""
