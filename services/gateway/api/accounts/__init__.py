"""The account: its settings and pictures, its users and their keys, its test mode, and what it holds about one person."""
