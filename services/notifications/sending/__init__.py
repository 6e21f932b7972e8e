"""Sending what is due, outside any transaction."""
