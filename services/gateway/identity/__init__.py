"""The identity provider (OpenID Connect)."""
