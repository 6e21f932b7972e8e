"""The contracts between services, and the runtime that they share. The only code that two services may share."""
