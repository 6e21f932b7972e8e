"""A client that is generated from /openapi.json, and a program written against its types."""
