"""ETags of documents: a client that has the present one gets 304 without the document.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go and
pkg/handler in k8s.io/kube-openapi, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

from kcm.apiserver.http.responses import Response


class ETags:
    """The ETags of one server's documents."""

    def __init__(self) -> None:
        self._hash = lru_cache(maxsize=16)(_hash)  # a document is one object until it changes

    def add(self, response: Response, if_none_match: str) -> Response:
        """Returns the response with an ETag, as 304 if the client has the document already.

        `if_none_match` is the value of the request's header, "" for none.
        """
        etag = f'"{self._hash(response.body)}"'
        headers = {**response.headers, "etag": etag, "vary": "Accept"}
        present = {word.strip().removeprefix("W/") for word in if_none_match.split(",")}
        if etag in present or "*" in present:
            return replace(response, body=b"", code=304, headers=headers)
        return replace(response, headers=headers)


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()
