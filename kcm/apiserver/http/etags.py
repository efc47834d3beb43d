"""ETags of documents: a client that has the present one gets 304 without the document.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go and
pkg/handler in k8s.io/kube-openapi, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

from kcm.apiserver.http.responses import Response


def with_etag(response: Response, if_none_match: str) -> Response:
    """Returns the response with an ETag, as 304 if the client has the document already.

    `if_none_match` is the value of the request's header, "" for none.
    """
    etag = f'"{_hash(response.body)}"'
    headers = {**response.headers, "etag": etag, "vary": "Accept"}
    known = {word.strip().removeprefix("W/") for word in if_none_match.split(",")}
    if etag in known or "*" in known:
        return replace(response, body=b"", code=304, headers=headers)
    return replace(response, headers=headers)


@lru_cache(maxsize=16)  # documents are the same object until they change
def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()
