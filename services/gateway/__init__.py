"""The one service that speaks HTTP: the REST API, users and their API keys, account settings, and the signing page."""
