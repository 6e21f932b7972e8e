"""What is on a page: letters, lines, boxes and cells, and the phrases that its text is cut into."""
