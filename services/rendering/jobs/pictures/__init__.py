"""Pictures: those that come in, and how they are kept in a PDF."""
