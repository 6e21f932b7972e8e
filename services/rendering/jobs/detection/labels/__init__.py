"""What labels say: the words of forms in many languages, and what they mean for the field beside them."""
