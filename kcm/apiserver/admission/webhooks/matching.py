"""Which webhooks are to be asked about a write.

Source: ShouldCallHook in
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go and
plugin/webhook/matchconditions/matcher.go, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from kcm import errors
from kcm.apiextensions.cel.policies import PolicyEvaluation
from kcm.apiextensions.cel.policy_programs import WEBHOOKS
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.webhooks.calls import Invocation
from kcm.apiserver.admission.webhooks.index import PreparedWebhook
from kcm.apiserver.admission.webhooks.metrics import WebhookMetrics

_NO_VARIABLES: Mapping[str, str] = {}


def match(
    prepared: PreparedWebhook, context: WriteContext, counts: WebhookMetrics, type_: str
) -> Invocation | None:
    """Returns the invocation of a webhook, or None if it is not to be asked.

    Raises InternalError for wrong selectors, and Forbidden if a match condition cannot be evaluated
    and the failure policy is Fail.
    """
    matched = prepared.matcher.match(context.write, context.namespace_labels)
    if matched is None:
        return None
    if prepared.fault:
        raise errors.BadRequest(f'webhook "{prepared.name}": {prepared.fault}')
    invocation = Invocation(prepared, matched)
    if not prepared.webhook.match_conditions:
        return invocation
    began = time.perf_counter()
    holds, faults = _evaluate(invocation, context)
    counts.observe_conditions(
        prepared.name,
        type_,
        context.write.operation,
        time.perf_counter() - began,
        matched=holds,
        failed=bool(faults),
    )
    if not faults:
        return invocation if holds else None
    if prepared.fails_open:
        return None
    write = context.write
    raise errors.Forbidden(
        f'{write.resource.name} "{write.name}" is forbidden: {faults}',
        resource=write.resource.name,
        name=write.name,
    )


def _evaluate(invocation: Invocation, context: WriteContext) -> tuple[bool, str]:
    """Reports whether all conditions hold, and why that is not known, "" if it is.

    A condition that is false decides, even if others cannot be evaluated.
    """
    given, activations = context.input(invocation.matched)
    evaluation = PolicyEvaluation(given, WEBHOOKS, _NO_VARIABLES, activations=activations)
    faults: list[str] = []
    with context.asking():
        for condition in invocation.prepared.webhook.match_conditions or ():
            evaluated = evaluation.evaluate(condition.expression)
            if evaluated.error:
                faults.append(evaluated.error)
            elif evaluated.value is not True:
                return False, ""
    return not faults, "; ".join(faults)
