"""Signatures that a provider of remote certificates makes: for the seal, and for signers who confirm with their own."""
