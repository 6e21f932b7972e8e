"""Text on paper: lines, directions, shapes, fonts."""
