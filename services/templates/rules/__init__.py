"""What a template may be: pure rules."""
