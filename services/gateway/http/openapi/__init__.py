"""What contracts/openapi.yaml says of a request and an answer, and what holds them to it."""
