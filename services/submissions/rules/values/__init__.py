"""What parties fill in: which fields by what names, with what defaults, and how it reads. Pure."""
