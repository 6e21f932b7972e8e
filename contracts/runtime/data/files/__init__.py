"""The files of a service: where they are stored, those of one request, those that records name."""
