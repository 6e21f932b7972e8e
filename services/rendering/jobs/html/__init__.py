"""HTML, made a PDF."""
