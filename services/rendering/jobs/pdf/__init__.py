"""Reading and writing PDF: its values, places and text, its claim to be an archive."""
