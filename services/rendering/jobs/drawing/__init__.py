"""What we draw on paper."""
