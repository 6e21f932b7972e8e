"""The signing page: what it shows, what its script asks for, and where it leads signers to and back from."""
