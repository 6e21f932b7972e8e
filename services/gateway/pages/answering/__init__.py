"""The parts that every page needs to take a request and answer it."""
