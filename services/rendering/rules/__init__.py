"""Pure rules."""
