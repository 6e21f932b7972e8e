"""Fields proposed for documents that have none: lines, boxes and leaders to fill in, and the labels beside them."""
