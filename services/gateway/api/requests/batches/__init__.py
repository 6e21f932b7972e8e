"""The rows of a batch: files as spreadsheets and programs write them, read into bodies of ``POST /submissions``; and back."""
