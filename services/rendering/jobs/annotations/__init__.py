"""Annotations that others made: the looks that they lack."""
