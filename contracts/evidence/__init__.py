"""The proof of a completion: statements, the chain of the trail, the manifest of the evidence."""
