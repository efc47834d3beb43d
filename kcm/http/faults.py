"""Why a call of another server failed, in the words of Go's HTTP client and of client-go.

Source: the packages net, crypto/x509 and net/http of Go 1.24, and
staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

import errno
import json
import socket
import ssl
from typing import Any

from kcm import errors

_SYSTEM = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.ETIMEDOUT: "connect: connection timed out",
    errno.EINVAL: "connect: invalid argument",
}
_STATUSES = {
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    413: "the server responded with the status code 413 but did not return more information",
    415: "the server was unable to respond with a content type that the client supports",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}
_LONGEST_ANSWER = 512  # characters of an answer that is no Status
# OpenSSL's codes of chains that no trusted certificate has signed
_UNTRUSTED = frozenset({7, 18, 19, 20, 21})
_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_IP = 10, 9, 62, 64


class CallFailed(errors.KcmError):
    """The server could not be called, or its response cannot be used."""

    def __init__(
        self, message: str, code: int = 503, *, answered: bool = False, timed_out: bool = False
    ) -> None:
        """`code` is the HTTP status of the answer, if the server has `answered`."""
        super().__init__(message)
        self.code = code
        self.answered = answered
        self.timed_out = timed_out


def connection_fault(error: BaseException, where: str) -> CallFailed:
    """Returns why there is no connection to `where`, a host and a port, or why it ended."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return CallFailed(f"dial tcp {where}: i/o timeout", timed_out=True)
    if isinstance(error, ssl.SSLCertVerificationError):
        return CallFailed(_certificate_fault(error))
    if isinstance(error, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(error):
            return CallFailed("http: server gave HTTP response to HTTPS client")
        return CallFailed(f"remote error: tls: {(error.reason or 'failed').lower()}")
    if isinstance(error, socket.gaierror):
        return CallFailed(f"dial tcp: lookup {where.rpartition(':')[0]}: no such host")
    number = error.errno if isinstance(error, OSError) else None
    if number in _SYSTEM:
        return CallFailed(f"dial tcp {where}: {_SYSTEM[number]}")
    if number == errno.ECONNRESET:
        return CallFailed("read: connection reset by peer")
    if isinstance(error, ConnectionError) and number is None:
        return CallFailed("EOF")
    return CallFailed(str(error) or type(error).__name__)


def _certificate_fault(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code in _UNTRUSTED:
        why = "certificate signed by unknown authority"
    elif code in (_EXPIRED, _NOT_YET):
        when = "not yet valid" if code == _NOT_YET else "has expired"
        why = f"certificate has expired or is not yet valid: {when}"
    elif code in (_OTHER_NAME, _OTHER_IP):
        why = f"certificate is not valid for this name: {error.verify_message}"
    else:
        why = error.verify_message
    return f"tls: failed to verify certificate: x509: {why}"


def status_fault(code: int, body: bytes) -> CallFailed:
    """Returns the failure that a response with an error's status stands for."""
    message = _message_of(body)
    if not message:
        message = _STATUSES.get(code, "")
    if not message:
        shown = body[:_LONGEST_ANSWER].decode("utf-8", "replace").strip()
        if code >= 500:
            message = (
                f'an error on the server ("{shown or "unknown"}") has prevented the request from '
                "succeeding"
            )
        else:
            message = "the server rejected our request for an unknown reason"
    return CallFailed(message, code, answered=True)


def _message_of(body: bytes) -> str:
    """Returns the message of a Status, "" if the body is none."""
    try:
        status: Any = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return ""
    message = status.get("message")
    return message[:_LONGEST_ANSWER] if isinstance(message, str) else ""
