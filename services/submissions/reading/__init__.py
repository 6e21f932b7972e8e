"""What is answered about submissions."""
