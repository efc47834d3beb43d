"""The limits of requests to other servers, whoever sends them."""

from __future__ import annotations

CONNECT_TIMEOUT = 10.0  # seconds for the name, the connection and TLS together
HEAD_TIMEOUT = 30.0  # seconds until the head of the response is complete
STALL_TIMEOUT = 60.0  # seconds for which a server may read nothing of a request's body
IDLE_TIMEOUT = 90.0  # seconds that an unused connection is kept
MOST_IDLE = 20  # unused connections to one server
MOST_REDIRECTS = 10  # as in Go's net/http
