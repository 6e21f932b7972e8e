"""Providers of duty stamps: what one is asked for, and the adapters to them."""
