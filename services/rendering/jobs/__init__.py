"""Pure functions on documents, bytes in and bytes out: no bus, no database, no network. They run in warm child processes."""
