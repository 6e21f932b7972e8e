"""What callers, signers and operators are told: every sentence in the code, and the rules of its style."""
