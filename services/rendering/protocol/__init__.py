"""What the service and its children say to each other: the messages, and how they go over a socket."""
