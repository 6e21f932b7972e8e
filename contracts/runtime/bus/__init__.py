"""RabbitMQ: topology, connections, calls, events."""
