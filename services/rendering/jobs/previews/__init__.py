"""Pictures of pages and of values."""
