"""The errors of requests that webhooks refuse, or that cannot be decided without one.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go and
staging/src/k8s.io/apiserver/pkg/util/webhook/error.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kcm import errors
from kcm.apiserver.http_errors import InternalError, StatusError

_LEAST_CODE, _MOST_CODE = 400, 599
_FIELDS = ("message", "reason", "details")
_LONGEST_MESSAGE = 32 * 1024  # characters
_LARGEST_DETAILS = 64 * 1024  # characters of JSON


class CallingWebhookFailed(errors.KcmError):
    """A webhook could not be asked, or its answer cannot be used."""

    def __init__(self, webhook: str, why: str, code: int = 503) -> None:
        super().__init__(f'failed calling webhook "{webhook}": {why}')
        self.code = code  # HTTP status of the call, as it is counted

    def to_internal_error(self) -> InternalError:
        """Returns the error of the request, if the webhook's failure policy is Fail."""
        return InternalError.because(self.message)


def denied(webhook: str, status: Mapping[str, Any] | None) -> StatusError:
    """Returns the error of a request that a webhook refuses with this Status."""
    given = {name: value for name, value in (status or {}).items() if name in _FIELDS}
    by = f'admission webhook "{webhook}" denied the request'
    message, reason = _text(given.get("message")), _text(given.get("reason"))
    code = (status or {}).get("code")
    is_error = isinstance(code, int) and _LEAST_CODE <= code <= _MOST_CODE
    details = given.get("details")
    return StatusError.of(
        message=f"{by}: {message or reason}" if message or reason else f"{by} without explanation",
        reason=reason,
        code=code if is_error and isinstance(code, int) else _LEAST_CODE,
        details=_details(details),
    )


def _details(value: Any) -> Mapping[str, Any]:
    is_small = isinstance(value, dict) and len(json.dumps(value)) <= _LARGEST_DETAILS
    return value if is_small else {}


def _text(value: Any) -> str:
    return value[:_LONGEST_MESSAGE] if isinstance(value, str) else ""
