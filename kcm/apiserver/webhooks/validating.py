"""Asks the validating webhooks about a write, all at once.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.backends.client import BackendClient
from kcm.apiserver.backends.waiting import LoopWaiter
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.remarks import Remarks
from kcm.apiserver.webhooks import matching
from kcm.apiserver.webhooks.calls import WebhookCall
from kcm.apiserver.webhooks.errors import CallingWebhookFailed
from kcm.apiserver.webhooks.index import PreparedWebhook
from kcm.apiserver.webhooks.metrics import VALIDATING, WebhookMetrics
from kcm.apiserver.webhooks.requester import Requester

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
        requester: Requester,
    ) -> None:
        """Returns if all admit the write; otherwise raises the error of the first that does not.

        Raises StatusError if a webhook refuses the write, InternalError if one cannot be asked and
        its failure policy is Fail, and RequestTimeout.
        """
        context = WriteContext(self.caches, write, requester.caller)
        matched = (matching.match(one, context, self.counts, VALIDATING) for one in webhooks)
        invocations = [invocation for invocation in matched if invocation is not None]
        if not invocations:
            return
        calls = [
            WebhookCall(invocation, write, self.counts, type_=VALIDATING)
            for invocation in invocations
        ]
        seconds = requester.deadline.left()

        answers = self.waiter.wait(lambda: self._ask_all(calls, seconds))
        errors = [
            self._judge(call, invocation.prepared, index, answer, requester.remarks)
            for index, (call, invocation, answer) in enumerate(
                zip(calls, invocations, answers, strict=True)
            )
        ]
        for error in errors:
            if error is not None:
                raise error

    async def _ask_all(
        self, calls: Sequence[WebhookCall], seconds: float
    ) -> list[bytes | BaseException]:
        if len(calls) == 1:  # most often; tasks and their ends would take turns of the event loop
            try:
                return [await self._ask(calls[0], seconds)]
            except Exception as error:  # noqa: BLE001 - judged as those of several are
                return [error]
        asked = (self._ask(call, seconds) for call in calls)
        return await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, call: WebhookCall, seconds: float) -> bytes:
        call.begin()
        return await call.send(self.client, seconds)

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
