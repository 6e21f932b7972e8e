"""Programs that make pages and pictures of docs/, from the code and from lists."""
