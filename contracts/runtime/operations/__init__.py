"""What an operator asks of a service: is all well, what is stuck, try it again."""
