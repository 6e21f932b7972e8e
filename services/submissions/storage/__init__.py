"""Rows: read, locked and written; who may see them."""
