"""What a field is on paper."""
