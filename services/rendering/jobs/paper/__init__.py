"""What is drawn on: one page, sheets that are laid over pages, and documents of our own that flow from page to page."""
