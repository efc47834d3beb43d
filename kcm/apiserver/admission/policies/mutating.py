"""Changes writes as the MutatingAdmissionPolicies that are bound to them say.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating, Kubernetes 1.36.
Departure: a policy that would change the options of a connection, such as those of an exec, fails.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api.admissionregistration_v1 import (
    CONNECT,
    IF_NEEDED,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    Mutation,
)
from kcm.api.scheme import Resource
from kcm.apiextensions import structure
from kcm.apiextensions.cel.patch_types import WrongPatchTypeError, read_object, read_patch
from kcm.apiextensions.cel.policies import PolicyEvaluation, TimeLeft
from kcm.apiextensions.structure import Struct
from kcm.apiserver.admission.attributes import SCALE, WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.policies.decisions import (
    COMPILE_ERROR,
    NO_ERROR,
    OTHER_ERROR,
    OUT_OF_BUDGET,
    match_conditions,
)
from kcm.apiserver.admission.policies.index import Mutating, PreparedBinding
from kcm.apiserver.admission.policies.metrics import MutationMetrics
from kcm.apiserver.admission.policies.run import PolicyRun
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.admission.webhooks import patching
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.http.bodies import json_patch, patches, typed
from kcm.apiserver.http.bodies.patches import ObjectPatch
from kcm.apiserver.http_errors import PolicyDenied
from kcm.store.admission.plugin import Reinvocation
from kcm.store.managed_fields.fieldsets import merge_values

_Bound = PreparedBinding[MutatingAdmissionPolicyBinding]
_APPLY_CONFIGURATION = "ApplyConfiguration"  # the other patch type is JSONPatch
_INVALID, _FORBIDDEN = "Invalid", "Forbidden"


class MutationFailedError(Exception):
    """A mutation cannot be made; the message says why."""

    def __init__(self, why: str, kind: str = OTHER_ERROR) -> None:
        super().__init__(why)
        self.kind = kind


class _UnchangedError(Exception):
    """A JSON patch has an operation `test` that fails, so it is not applied."""


class PolicyMutations:
    """Changes writes by policies."""

    def __init__(self, caches: Caches, counts: MutationMetrics) -> None:
        self._caches = caches
        self._counts = counts

    def admit(
        self,
        policies: Sequence[Mutating],
        write: WriteAttributes,
        request: AdmissionRequest,
        before: Reinvocation | None,
    ) -> tuple[WriteAttributes, Reinvocation]:
        """Returns the write as the policies have changed it, and which of them are to be run again.

        `before` is that of the first pass; in a second one, only those are run. Raises PolicyDenied
        if a policy cannot be run and its failure policy is Fail, and StoreUnavailable if what it
        needs is not loaded.
        """
        state = before or Reinvocation()
        if before is not None and (write.new or write.sent) != state.output:
            state.note_change()
        context = WriteContext(self._caches, write, request.caller)
        run = _Mutating(self._caches, self._counts, context, state, again=before is not None)
        with context.asking():
            write = run.run(policies)
        state.output = write.new or write.sent
        return write, state


@dataclass(frozen=True)
class _Denial:
    message: str
    reason: str


class _Mutating(PolicyRun[MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding]):
    """Runs policies on one write, one after the other."""

    def __init__(
        self,
        caches: Caches,
        counts: MutationMetrics,
        context: WriteContext,
        state: Reinvocation,
        *,
        again: bool,
    ) -> None:
        super().__init__(caches, context)
        self._counts = counts
        self._state = state
        self._again = again
        self._denials: list[_Denial] = []

    def run(self, policies: Sequence[Mutating]) -> WriteAttributes:
        """Returns the write as it was changed. Raises PolicyDenied.

        Which bindings and parameters match is decided for the write as it was, as upstream.
        """
        matching = [
            (prepared, matched, list(self._invocations(prepared)))
            for prepared in policies
            if (matched := self._match(prepared)) is not None
        ]
        for prepared, matched, invocations in matching:
            left = TimeLeft(self._left)
            for bound, param in invocations:
                self._invoke(prepared, matched, bound, param, left)
        if self._denials:
            first = self._denials[0]
            raise PolicyDenied.because([one.message for one in self._denials], first.reason)
        return self._write

    def _invoke(
        self,
        prepared: Mutating,
        matched: Resource,
        bound: _Bound,
        param: Any,
        left: TimeLeft,
    ) -> None:
        spec = prepared.policy.spec
        matches, faults = match_conditions(spec, self._prepare(prepared, matched, param, left))
        if faults:
            self._note_fault(prepared, bound, "; ".join(faults), _INVALID)
        key = (prepared.policy.name, bound.binding.name, _name_of(param))
        if faults or not matches or (self._again and key not in self._state.again):
            return
        before = self._write
        for mutation in spec.mutations or ():
            if self._write.new is not None or self._write.sent is not None:
                evaluation = self._prepare(prepared, matched, param, left)
                self._mutate(prepared, bound, mutation, evaluation, matched)
        if self._write is not before:
            self._state.note_change()
        if spec.reinvocation_policy == IF_NEEDED:
            self._state.called.add(key)

    def _mutate(
        self,
        prepared: Mutating,
        bound: _Bound,
        mutation: Mutation,
        evaluation: PolicyEvaluation,
        matched: Resource,
    ) -> None:
        write, started, kind = self._write, time.perf_counter(), NO_ERROR
        model = None if write.sent is not None or write.subresource == SCALE else matched.model
        try:
            change = _evaluate(mutation, evaluation, matched, model)
            if write.operation == CONNECT:
                raise MutationFailedError("the options of a connection cannot be changed")
            changed = patching.change_write(write, change, matched, strict=True)
            if changed is not write:
                self._context = self._context.with_write(changed)
        except _UnchangedError:
            pass
        except MutationFailedError as error:
            kind = error.kind
            self._note_fault(prepared, bound, str(error), _INVALID)
        names = prepared.policy.name, bound.binding.name
        self._counts.observe(*names, kind, time.perf_counter() - started)

    def _deny(self, prepared: Mutating, bound: _Bound | None, why: str, reason: str) -> None:
        by = f'policy "{prepared.policy.name}"'
        if bound is not None:
            by = f"policy '{prepared.policy.name}' with binding '{bound.binding.name}'"
        self._denials.append(_Denial(f"{by} denied request: {why}", reason or _FORBIDDEN))


def _name_of(param: Any) -> str:
    """Returns namespace and name of a parameter, "/" without one."""
    metadata = param.get("metadata", {}) if isinstance(param, Mapping) else {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


# --- one mutation


def _evaluate(
    mutation: Mutation, evaluation: PolicyEvaluation, matched: Resource, model: Struct
) -> ObjectPatch:
    """Returns the patch that an expression makes. Raises MutationFailedError."""
    applies = mutation.patch_type == _APPLY_CONFIGURATION
    source = mutation.apply_configuration if applies else mutation.json_patch
    evaluated = evaluation.evaluate((source.expression if source is not None else "") or "")
    if evaluated.error:
        compiles = not evaluated.error.startswith("compilation error")
        kind = OTHER_ERROR if compiles else COMPILE_ERROR
        raise MutationFailedError(evaluated.error, OUT_OF_BUDGET if evaluation.exhausted else kind)
    try:
        if applies:
            return _apply_configuration(read_object(evaluated.value), model)
        return _json_patch(read_patch(evaluated.value), matched)
    except WrongPatchTypeError as error:
        raise MutationFailedError(str(error)) from None


def _apply_configuration(configuration: dict[str, Any], model: Struct) -> ObjectPatch:
    """Returns the patch that sets all that is in a configuration, and owns nothing of it. Raises
    MutationFailedError.
    """
    if faults := typed.describe_faults(configuration, model):
        why = f"failed to convert patch object to typed object: {faults}"
        raise MutationFailedError(f"error applying patch: {why}")
    if atomics := ", ".join(find_atomics(configuration, model)):
        why = f"may not mutate atomic arrays, maps or structs: {atomics}"
        raise MutationFailedError(f"error applying patch: invalid ApplyConfiguration: {why}")
    return ObjectPatch(
        lambda target: merge_values(target, configuration, model), frozenset(configuration)
    )


def find_atomics(value: Any, model: Struct, path: str = "") -> Iterator[str]:
    """Yields the paths of atomic lists, maps and structs in a configuration. Setting them would
    remove what else is in them.
    """
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        field, at = structure.field(model, name), f"{path}.{name}"
        if field is None:
            continue
        struct = field.shape.struct
        if isinstance(inner, list):
            if not field.merge:
                yield at
            for number, item in enumerate(inner):
                yield from find_atomics(item, struct, f"{at}[{number}]")
        elif isinstance(inner, Mapping):
            if field.atomic or getattr(struct, "kubernetes_atomic", False):
                yield at
            yield from find_atomics(inner, struct, at)


def _json_patch(operations: list[dict[str, Any]], matched: Resource) -> ObjectPatch:
    change = patches.parse(patches.JSON_PATCH, json.dumps(operations).encode(), matched)

    def run(target: dict[str, Any]) -> dict[str, Any]:
        try:
            return change(target)
        except json_patch.PatchTestFailed:
            raise _UnchangedError from None
        except errors.ApiError as error:
            raise MutationFailedError(f"JSON Patch: {error.message}") from None

    return ObjectPatch(run, change.fields)
