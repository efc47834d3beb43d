r"""Decodes protobuf request bodies (the `k8s\0` envelope) of all built-in kinds into their JSON.

client-go from 1.32 on sends typed requests in protobuf, and does not retry with JSON. The protobuf
runtime parses and checks the bytes. The code here turns its messages into the JSON that Go would
encode for the same structs. Unknown fields are skipped, as protobuf demands.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm import errors
from kcm.apiserver.http_errors import UnsupportedMediaType

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


def decode(body: bytes) -> dict[str, Any]:
    """Returns the object in the body as a JSON value.

    Raises BadRequest and UnsupportedMediaType.
    """
    # The runtime takes some 15 ms to import, and most servers never see such a body.
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    from kcm.apiserver.bodies import protobuf_values as values  # noqa: PLC0415

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
