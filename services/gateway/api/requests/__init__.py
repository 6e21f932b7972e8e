"""What handlers share: the body and files of a request, its repetition, the way to its handler."""
