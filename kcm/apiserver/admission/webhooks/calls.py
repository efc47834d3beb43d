"""Calls one webhook about one write.

Source: callHook in
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from kcm import errors
from kcm.api.admissionregistration_v1 import NONE, NONE_ON_DRY_RUN
from kcm.api.scheme import Resource
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.webhooks.errors import CallingWebhookFailed, denied
from kcm.apiserver.admission.webhooks.index import PreparedWebhook
from kcm.apiserver.admission.webhooks.metrics import (
    ADMIT,
    CALLING_ERROR,
    INTERNAL_ERROR,
    NO_ERROR,
    WebhookMetrics,
)
from kcm.apiserver.admission.webhooks.review import (
    InvalidReview,
    ReviewAnswer,
    ReviewRequest,
    UnsupportedPatch,
    make_review,
    read_answer,
)
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.http_errors import StatusError
from kcm.apiserver.request import Remarks
from kcm.http.faults import CallFailed
from kcm.redisio import greenlets

_SHORT_ANSWER = 16 * 1024  # bytes, in the event loop


@dataclass(frozen=True)
class Invocation:
    """A webhook that is to be asked, and the version of the written kind that its rules match."""

    prepared: PreparedWebhook
    matched: Resource


class WebhookCall:
    """A call of one webhook: first `begin`, then `send`, then `finish`."""

    def __init__(
        self, invocation: Invocation, write: WriteAttributes, counts: WebhookMetrics, *, type_: str
    ) -> None:
        """`type_` is ADMIT or VALIDATING."""
        self._prepared = invocation.prepared
        self._matched = invocation.matched
        self._write = write
        self._counts = counts
        self._type = type_
        self._request: ReviewRequest | None = None
        self._began = time.perf_counter()

    def begin(self) -> None:
        """Makes the review to send. Raises CallingWebhookFailed, and BadRequest for a dry run that
        the webhook does not support.
        """
        name, webhook = self._prepared.name, self._prepared.webhook
        if self._write.dry_run and webhook.side_effects not in (NONE, NONE_ON_DRY_RUN):
            raise errors.BadRequest(f'admission webhook "{name}" does not support dry run')
        try:
            self._request = make_review(
                self._write, self._matched, webhook.admission_review_versions
            )
        except InvalidReview as error:
            why = f"could not create admission objects: {error.message}"
            raise CallingWebhookFailed(name, why, 400) from None

    async def send(self, client: BackendClient, most_seconds: float) -> bytes:
        """Returns the body of the webhook's response. Raises CallingWebhookFailed."""
        assert self._request is not None
        seconds = min(float(self._prepared.timeout), most_seconds)
        try:
            return await client.post_soon(self._prepared.backend, self._request.body, seconds)
        except CallFailed as error:
            why = f"failed to call webhook: {error.message}"
            raise CallingWebhookFailed(self._prepared.name, why, error.code) from None

    def finish(self, body: bytes, remarks: Remarks) -> ReviewAnswer:
        """Returns the answer of a webhook that admits the request.

        `remarks` get its warnings and annotations. Raises CallingWebhookFailed, and StatusError if
        the webhook refuses the request.
        """
        assert self._request is not None
        # A request that goes on in a thread asks its webhooks again, as one that is overtaken does.
        greenlets.raise_if_long(len(body), _SHORT_ANSWER)
        greenlets.raise_if_many_values(body)
        name = self._prepared.name
        try:
            answer = read_answer(self._request, body, mutating=self._type == ADMIT)
        except UnsupportedPatch as error:
            raise CallingWebhookFailed(name, error.message) from None
        except InvalidReview as error:
            why = f"received invalid webhook response: {error.message}"
            raise CallingWebhookFailed(name, why) from None
        for key, value in answer.annotations.items():
            remarks.annotations.setdefault(f"{name}/{key}", value)
        remarks.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise denied(name, answer.status)
        return answer

    def count(self, error: Exception | None) -> None:
        """Counts the call, which ended with this error, or None."""
        name, operation = self._prepared.name, self._write.operation
        code, rejected, kind = 200, error is not None, ""
        if isinstance(error, CallingWebhookFailed):
            code, rejected, kind = error.code, not self._prepared.fails_open, CALLING_ERROR
        elif isinstance(error, StatusError):
            code, kind = error.code, NO_ERROR
        elif error is not None:
            code, kind = 0, INTERNAL_ERROR
        seconds = time.perf_counter() - self._began
        self._counts.observe_call(name, self._type, operation, code, seconds, rejected=rejected)
        if rejected:
            self._counts.count_rejection(name, self._type, operation, kind, code)
        elif error is not None:
            self._counts.count_opened(name, self._type)
