"""Word documents, made ready to be converted."""
