"""Rows of what takes several steps, read and written: signatures and confirmations at providers, erasures."""
