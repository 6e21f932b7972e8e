"""``/mcp``: agents read, prepare and, where somebody lets them, send, by the Model Context Protocol. They never sign.

From the socket inwards: ``endpoint`` (who calls), ``messages`` (what a message is), ``protocol`` (the official SDK, imported
with the first call), ``tools`` (what there is), ``reading`` and ``sending`` (what they do), ``operations`` (every one of them
is a call of the API, with its checks).
"""
