"""``countersign``: one command for whoever runs the suite."""
