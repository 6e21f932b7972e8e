"""Seals: made, read back, verified."""
