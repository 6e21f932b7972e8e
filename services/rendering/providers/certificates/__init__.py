"""Providers of remote certificates: what one is asked for, and the adapter to the API of the Cloud Signature Consortium."""
