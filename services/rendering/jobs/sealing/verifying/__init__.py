"""Read back what was sealed, and verify the signatures of any file."""
