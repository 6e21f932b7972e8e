"""Transactions: one function, one use case."""
