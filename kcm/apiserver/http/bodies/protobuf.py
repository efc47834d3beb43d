r"""Turns protobuf (the `k8s\0` envelope) of all built-in kinds into JSON, and JSON into protobuf.

client-go from 1.32 on sends typed requests in protobuf, and does not retry with JSON. The protobuf
runtime parses and checks the bytes. The code here turns its messages into the JSON that Go would
encode for the same structs. Unknown fields are skipped, as protobuf demands.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from kcm import errors
from kcm.apiserver.http.responses import JSON, PROTOBUF, Response, prefers_protobuf
from kcm.apiserver.http_errors import UnsupportedMediaType
from kcm.apiserver.request import Request
from kcm.redisio import greenlets

CONTENT_TYPE = PROTOBUF
_SHORT = 16 * 1024  # bytes of JSON that the event loop turns into protobuf
_MAGIC = b"k8s\x00"


def decode(body: bytes) -> dict[str, Any]:
    """Returns the object in the body as a JSON value.

    Raises BadRequest and UnsupportedMediaType.
    """
    # The runtime takes some 15 ms to import, and most servers never see such a body.
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    from kcm.apiserver.http.bodies import protobuf_values as values  # noqa: PLC0415

    if not body.startswith(_MAGIC):
        raise errors.BadRequest("the body is not in the protobuf envelope of Kubernetes")
    try:
        api_version, kind, raw = values.envelope(body[len(_MAGIC) :])
        message = values.message_of(api_version, kind)
        if message is None:
            raise UnsupportedMediaType(f"{kind} in {api_version} has no protobuf form: send JSON")
        body_value = values.parse_message(message, raw)
    # OSError is raised for a time that the platform cannot represent.
    except (DecodeError, ValueError, OverflowError, OSError, RecursionError) as error:
        raise errors.BadRequest(f"the body is not valid protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind} | body_value


def respond(response: Response, request: Request) -> Response:
    """Returns a response as protobuf if the client takes nothing else, and its kind has that form.

    Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation, Kubernetes 1.36.
    """
    is_asked = request.path.startswith("/api") and prefers_protobuf(request.header(b"accept"))
    if not is_asked or response.content_type != JSON:
        return response
    greenlets.raise_if_long(len(response.body), _SHORT)
    body = encode(from_json(response.body))
    return response if body is None else replace(response, body=body, content_type=CONTENT_TYPE)


def encode(body: Any) -> bytes | None:
    """Returns a JSON value as protobuf, None if its kind has no protobuf form."""
    # As for the imports of `decode`.
    from kcm.apiserver.http.bodies import protobuf_encoding as encoding  # noqa: PLC0415
    from kcm.apiserver.http.bodies import protobuf_values as values  # noqa: PLC0415

    version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    if (message := values.message_of(version, kind)) is not None:
        return encoding.encode_body(body, message)
    item = values.message_of(version, kind.removesuffix("List"))
    is_list = kind.endswith("List") and isinstance(body.get("items"), list)
    return encoding.encode_list(body, item) if is_list and item is not None else None
