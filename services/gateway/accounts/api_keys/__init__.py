"""API keys: made, kept, and when each was used."""
