"""What is kept of signers themselves: who they proved to be, their codes, their phones."""
