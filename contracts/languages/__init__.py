"""The languages in which people are spoken to: which there are, which one a reader gets, and what is said in it.

``docs/languages.md`` tells how it works and how a language is added.
"""
