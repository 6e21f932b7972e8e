"""What goes along with a release: the notice of what others made, and bills of materials."""
