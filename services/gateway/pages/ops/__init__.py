"""``/ops``: what does not go on in the installation, and what its operators may do about it.

It works without a script, shows no names and no addresses, and is there for operators alone (``accounts.operators``): whoever
has no session gets the answer of a page that there is not, but for the form that begins one, which is there once an operator
has a key. Every change is a form's POST that was confirmed, carries the session's own secret, comes from a page of ours, and is
noted before it is done.
"""
