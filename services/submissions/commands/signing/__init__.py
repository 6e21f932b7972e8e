"""Transactions of signers: one function, one use case of the signing page."""
