"""What happens to every PDF that comes in."""
