"""Field tags in the text of a PDF: found, read, taken out."""
