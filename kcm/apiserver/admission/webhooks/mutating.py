"""Asks the mutating webhooks about a write, one after the other.

Those that come before one that changed the object, and want to know, are asked once more.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating, Kubernetes 1.33.
Departure: patches are not in the audit log, which is at the level of metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_core import to_json

from kcm.api.admissionregistration_v1 import CONNECT
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.admission.webhooks import matching, patching
from kcm.apiserver.admission.webhooks.calls import Invocation, WebhookCall
from kcm.apiserver.admission.webhooks.errors import CallingWebhookFailed
from kcm.apiserver.admission.webhooks.index import PreparedWebhook
from kcm.apiserver.admission.webhooks.metrics import ADMIT, WebhookMetrics
from kcm.apiserver.admission.webhooks.review import ReviewAnswer
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.egress.posting import BackendClient
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.apiserver.http_errors import InternalError
from kcm.store.admission.plugin import Reinvocation

_MUTATION = "mutation.webhook.admission.k8s.io/"
_FAILED_OPEN = f"failed-open.{_MUTATION}"


@dataclass(frozen=True)
class MutatingWebhooks:
    """Asks mutating webhooks."""

    caches: Caches
    client: BackendClient
    waiter: LoopWaiter
    counts: WebhookMetrics

    def admit(
        self,
        webhooks: Sequence[PreparedWebhook],
        write: WriteAttributes,
        request: AdmissionRequest,
        before: Reinvocation | None,
    ) -> tuple[WriteAttributes, Reinvocation]:
        """Returns the write with the object as the webhooks have changed it, and which of them are
        to be called again.

        `before` is that of the first pass; in a second one, only those are called. Raises
        StatusError if a webhook refuses the write, InternalError if one cannot be called and its
        failure policy is Fail, and RequestTimeout.
        """
        state = before or Reinvocation()
        if before is not None:
            if (write.new or write.sent) != state.output:
                state.note_change()
            webhooks = [webhook for webhook in webhooks if webhook.number in state.again]
        write = _Round(self, request, state).run(webhooks, write, int(before is not None))
        state.output = write.new or write.sent
        return write, state


@dataclass
class _Round:
    """Asks webhooks in turn."""

    server: MutatingWebhooks
    request: AdmissionRequest
    state: Reinvocation

    def run(
        self, webhooks: Sequence[PreparedWebhook], write: WriteAttributes, number: int
    ) -> WriteAttributes:
        server, context = (
            self.server,
            WriteContext(self.server.caches, write, self.request.caller),
        )
        for prepared in webhooks:
            invocation = matching.match(prepared, context, server.counts, ADMIT)
            if invocation is None:
                continue
            changed = self._ask(invocation, write, number)
            if changed is not write:
                self.state.note_change()
                write, context = changed, self._context(changed)
            if prepared.is_reinvoked:
                self.state.called.add(prepared.number)
        return write

    def _context(self, write: WriteAttributes) -> WriteContext:
        return WriteContext(self.server.caches, write, self.request.caller)

    def _ask(self, invocation: Invocation, write: WriteAttributes, number: int) -> WriteAttributes:
        """Returns the write as the webhook has changed it, the same one if nothing changed."""
        prepared, annotations = invocation.prepared, self.request.remarks.annotations
        place = f"round_{number}_index_{prepared.number}"
        call = WebhookCall(invocation, write, self.server.counts, type_=ADMIT)
        changed = write
        try:
            changed = self._mutate(call, invocation, write)
        except CallingWebhookFailed as error:
            call.count(error)
            if not prepared.fails_open:
                raise error.to_internal_error() from None
            annotations[_FAILED_OPEN + place] = prepared.name
            self.request.deadline.check()
        except Exception as error:
            call.count(error)
            raise
        else:
            call.count(None)
        finally:
            shown = {
                "configuration": prepared.configuration,
                "webhook": prepared.name,
                "mutated": changed is not write,
            }
            annotations[_MUTATION + place] = to_json(shown).decode()
        return changed

    def _mutate(
        self, call: WebhookCall, invocation: Invocation, write: WriteAttributes
    ) -> WriteAttributes:
        call.begin()
        server, seconds = self.server, self.request.deadline.left()
        body = server.waiter.wait(lambda: call.send(server.client, seconds))
        return _patched(call.finish(body, self.request.remarks), invocation, write)


def _patched(
    answer: ReviewAnswer, invocation: Invocation, write: WriteAttributes
) -> WriteAttributes:
    name = invocation.prepared.name
    if not answer.patch or not patching.read_operations(name, answer.patch):
        return write
    if write.new is None and (write.sent is None or write.operation == CONNECT):
        raise InternalError.because(
            f'admission webhook "{name}" attempted to modify the object, which is not supported '
            "for this operation"
        )
    matched = invocation.matched
    return patching.change_write(write, patching.read_patch(answer.patch, matched), matched)
