"""Duty stamps: where they go on a file, and whether a provider put them there."""
