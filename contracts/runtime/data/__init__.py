"""What a service keeps: database, blob store, due work."""
