"""The specimen: does what a message tells it to, for better or worse."""
