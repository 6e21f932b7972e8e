"""The pages that people see: the signing page, file links, the local mail page, the welcome page.

A Flask application, mounted beside the API. It keeps nothing: everything comes from the services by RPC and from the
blob store. It refuses to be framed by strangers, to run a script that is not a file of its own, and to change anything
on a GET.
"""

from services.gateway.pages.app import create_pages, serves

__all__ = ["create_pages", "serves"]
