"""The secrets that tests give to a service: as long as the settings want them."""

LINK_SECRET = "signs the links of the tests and nothing else"
KEY_ENCRYPTION_SECRET = "encrypts the API keys of the tests and nothing else"
