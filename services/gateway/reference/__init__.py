"""The reference of the API at ``/reference``: pages without a script, the same as Markdown, and ``llms.txt``."""
