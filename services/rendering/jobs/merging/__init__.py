"""Several PDFs become one."""
