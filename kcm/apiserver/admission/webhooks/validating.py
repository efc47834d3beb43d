"""Asks the validating webhooks about a write, all at once.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.admission.webhooks import matching
from kcm.apiserver.admission.webhooks.calls import WebhookCall
from kcm.apiserver.admission.webhooks.errors import CallingWebhookFailed
from kcm.apiserver.admission.webhooks.index import PreparedWebhook
from kcm.apiserver.admission.webhooks.metrics import VALIDATING, WebhookMetrics
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.apiserver.request import Remarks

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/"


@dataclass(frozen=True)
class ValidatingWebhooks:
    """Asks validating webhooks."""

    caches: Caches
    client: BackendClient
    waiter: LoopWaiter
    counts: WebhookMetrics

    def validate(
        self,
        webhooks: Sequence[PreparedWebhook],
        write: WriteAttributes,
        request: AdmissionRequest,
    ) -> None:
        """Returns if all admit the write; otherwise raises the error of the first that does not.

        Raises StatusError if a webhook refuses the write, InternalError if one cannot be asked and
        its failure policy is Fail, and RequestTimeout.
        """
        context = WriteContext(self.caches, write, request.caller)
        matched = (matching.match(one, context, self.counts, VALIDATING) for one in webhooks)
        invocations = [invocation for invocation in matched if invocation is not None]
        if not invocations:
            return
        calls = [
            WebhookCall(invocation, write, self.counts, type_=VALIDATING)
            for invocation in invocations
        ]
        # Not in the event loop: the object may have to be converted, by a webhook.
        faults = [_begin(call) for call in calls]
        begun = [call for call, fault in zip(calls, faults, strict=True) if fault is None]
        bodies = iter(self._ask(begun, request.deadline.left()))
        answers = [next(bodies) if fault is None else fault for fault in faults]
        errors = [
            self._judge(call, invocation.prepared, index, answer, request.remarks)
            for index, (call, invocation, answer) in enumerate(
                zip(calls, invocations, answers, strict=True)
            )
        ]
        for error in errors:
            if error is not None:
                raise error

    def _ask(self, calls: Sequence[WebhookCall], seconds: float) -> list[bytes | BaseException]:
        """Returns the bodies of the answers, or the errors in their place."""
        if len(calls) == 1:  # most often; tasks and their ends would take turns of the event loop
            try:
                return [self.waiter.wait(lambda: calls[0].send(self.client, seconds))]
            except Exception as error:  # noqa: BLE001 - judged as those of several are
                return [error]

        async def ask_all() -> list[bytes | BaseException]:
            asked = (call.send(self.client, seconds) for call in calls)
            return await asyncio.gather(*asked, return_exceptions=True)

        return self.waiter.wait(ask_all) if calls else []

    def _judge(
        self,
        call: WebhookCall,
        prepared: PreparedWebhook,
        index: int,
        answer: bytes | BaseException,
        remarks: Remarks,
    ) -> Exception | None:
        """Returns the error that a webhook's answer means for the request, None if there is
        none.
        """
        try:
            if isinstance(answer, BaseException):
                raise answer
            call.finish(answer, remarks)
        except CallingWebhookFailed as error:
            call.count(error)
            if not prepared.fails_open:
                return error.to_internal_error()
            remarks.annotations[f"{_FAILED_OPEN}round_0_index_{index}"] = prepared.name
        except Exception as error:  # noqa: BLE001 - raised after all were counted
            call.count(error)
            return error
        else:
            call.count(None)
        return None


def _begin(call: WebhookCall) -> Exception | None:
    """Makes the review. Returns what is wrong, None if nothing is."""
    try:
        call.begin()
    except Exception as error:  # noqa: BLE001 - judged with the answers of the others
        return error
    return None
