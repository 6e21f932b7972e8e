"""The content of pages that others made: its glyphs, and how some of them are taken out."""
