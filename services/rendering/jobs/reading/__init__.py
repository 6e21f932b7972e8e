"""The text of pages for readers who do not look at the pictures: only what the pictures show."""
