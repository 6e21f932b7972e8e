"""The data that a service keeps: database, blob store, due work."""
