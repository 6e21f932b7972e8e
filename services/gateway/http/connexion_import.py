"""Connexion, imported without the warnings of its import: a test client nobody here uses, a class it takes by its old name.

Every module of the gateway takes Connexion from here.

It does not compare our OpenAPI document with OpenAPI's own schema: that takes 0.3 s of a processor at each start, and what
comes of it is known when the document is written (``tests/contract/docs/interface/test_openapi.py``).
"""

import sys
import warnings

# jsonschema takes what it finds for its formats. This package, which no image has, comes with the tests' judge of the SBOM and
# compiles 38 grammars when it is imported, 1.6 s of a processor for each start of the gateway; Connexion has no use for it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # documented: it cannot be imported, then

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from connexion.exceptions import ProblemException, UnsupportedMediaTypeProblem
    from connexion.lifecycle import ConnexionRequest, ConnexionResponse
    from connexion.middleware import ConnexionMiddleware
    from connexion.middleware.abstract import ROUTING_CONTEXT
    from connexion.middleware.exceptions import ExceptionMiddleware
    from connexion.middleware.request_validation import RequestValidationMiddleware
    from connexion.middleware.response_validation import ResponseValidationMiddleware
    from connexion.middleware.routing import RoutingMiddleware
    from connexion.middleware.security import SecurityMiddleware
    from connexion.resolver import Resolver
    from connexion.security import ApiKeySecurityHandler
    from connexion.spec import OpenAPISpecification

OpenAPISpecification._validate_spec = classmethod(lambda _cls, _document: None)

__all__ = [
    "ROUTING_CONTEXT",
    "ApiKeySecurityHandler",
    "ConnexionMiddleware",
    "ConnexionRequest",
    "ConnexionResponse",
    "ExceptionMiddleware",
    "ProblemException",
    "RequestValidationMiddleware",
    "Resolver",
    "ResponseValidationMiddleware",
    "RoutingMiddleware",
    "SecurityMiddleware",
    "UnsupportedMediaTypeProblem",
]
