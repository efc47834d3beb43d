"""Field selectors: select the objects of a list or watch by a few fields of each kind.

Source: pkg/apis/core/v1/conversion.go (field label conversions) and the `ToSelectableFields` of
each kind's strategy, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api import events_v1
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.batch_v1 import Job
from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.api.core_v1 import Event, Namespace, Node, Pod, ReplicationController, Secret, Service
from kcm.api.custom.kinds import CustomObject, CustomResource
from kcm.api.scheme import Resource
from kcm.apiextensions import jsonpath
from kcm.apimachinery.meta_v1 import KubeObject

Getter = Callable[[Any], object]

_METADATA: dict[str, Getter] = {
    "metadata.name": lambda obj: obj.metadata.name,
    "metadata.namespace": lambda obj: obj.metadata.namespace,
}

_BY_KIND: dict[type[KubeObject], dict[str, Getter]] = {
    Pod: {
        "spec.nodeName": lambda pod: pod.spec.node_name,
        "spec.restartPolicy": lambda pod: pod.spec.restart_policy,
        "spec.schedulerName": lambda pod: pod.spec.scheduler_name,
        "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
        "spec.hostNetwork": lambda pod: bool(pod.spec.host_network),
        "status.phase": lambda pod: pod.status.phase,
        "status.podIP": lambda pod: pod.status.pod_ip,
        "status.podIPs": lambda pod: pod.status.pod_ip,
        "status.nominatedNodeName": lambda pod: pod.status.nominated_node_name,
    },
    Node: {"spec.unschedulable": lambda node: bool(node.spec.unschedulable)},
    Namespace: {
        "name": lambda namespace: namespace.metadata.name,
        "status.phase": lambda namespace: namespace.status.phase,
    },
    Job: {"status.successful": lambda job: job.status.succeeded or 0},
    ReplicaSet: {"status.replicas": lambda replica_set: replica_set.status.replicas},
    ReplicationController: {"status.replicas": lambda obj: obj.status.replicas},
    CertificateSigningRequest: {"spec.signerName": lambda obj: obj.spec.signer_name},
    ClusterTrustBundle: {"spec.signerName": lambda bundle: bundle.spec.signer_name},
    Secret: {"type": lambda secret: secret.type},
    Service: {
        "spec.clusterIP": lambda service: service.spec.cluster_ip,
        "spec.type": lambda service: service.spec.type,
    },
    Event: {
        "involvedObject.kind": lambda event: event.involved_object.kind,
        "involvedObject.namespace": lambda event: event.involved_object.namespace,
        "involvedObject.name": lambda event: event.involved_object.name,
        "involvedObject.uid": lambda event: event.involved_object.uid,
        "involvedObject.apiVersion": lambda event: event.involved_object.api_version,
        "involvedObject.resourceVersion": lambda event: event.involved_object.resource_version,
        "involvedObject.fieldPath": lambda event: event.involved_object.field_path,
        "reason": lambda event: event.reason,
        "reportingComponent": lambda event: event.reporting_component,
        "source": lambda event: event.source.component or event.reporting_component,
        "type": lambda event: event.type,
    },
}


_BY_KIND[events_v1.Event] = {
    "reason": lambda event: event.reason,
    "reportingController": lambda event: event.reporting_controller,
    "type": lambda event: event.type,
    "regarding.kind": lambda event: event.regarding.kind,
    "regarding.namespace": lambda event: event.regarding.namespace,
    "regarding.name": lambda event: event.regarding.name,
    "regarding.uid": lambda event: event.regarding.uid,
    "regarding.apiVersion": lambda event: event.regarding.api_version,
    "regarding.resourceVersion": lambda event: event.regarding.resource_version,
    "regarding.fieldPath": lambda event: event.regarding.field_path,
}


_BUILT_IN = {model: _METADATA | fields for model, fields in _BY_KIND.items()}


def list_supported_fields(resource: Resource) -> Mapping[str, Getter]:
    """Returns the fields that selectors over this kind may use, with functions for their values."""
    if isinstance(resource, CustomResource):
        return _METADATA | {path[1:]: _at(path) for path in resource.custom.selectable}
    return _BUILT_IN.get(resource.model, _METADATA)


def _at(path: str) -> Getter:
    """Returns a function for the value at a path that a definition makes selectable."""

    def get(obj: CustomObject) -> object:
        values = jsonpath.find(path, obj.content)
        return values[0] if values else None

    return get


@dataclass(frozen=True)
class FieldTerm:
    """A condition: the text of a field is, or with `negated` is not, a value."""

    field: str
    negated: bool
    value: str

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{_escape(self.value)}"


@dataclass(frozen=True)
class FieldSelector:
    """Terms that must all hold. Without any, the selector matches everything."""

    terms: tuple[FieldTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Parses a selector such as `spec.nodeName=n1,status.phase!=Failed`. Raises BadRequest."""
        return cls(tuple(_term(part, text) for part in _split(text) if part))

    @property
    def empty(self) -> bool:
        """Reports whether the selector has no terms and matches everything."""
        return not self.terms

    def check(self, resource: Resource) -> None:
        """Raises BadRequest if a term has a field that this kind does not support."""
        supported = list_supported_fields(resource)
        for term in self.terms:
            _getter(term, supported)

    def matches(self, obj: KubeObject, resource: Resource) -> bool:
        """Reports whether all terms hold. Raises BadRequest for an unsupported field."""
        supported = list_supported_fields(resource)
        values = [_text(_getter(term, supported)(obj)) for term in self.terms]
        return all(
            (value == term.value) != term.negated
            for value, term in zip(values, self.terms, strict=True)
        )

    def __str__(self) -> str:
        return ",".join(str(term) for term in self.terms)


def _getter(term: FieldTerm, supported: Mapping[str, Getter]) -> Getter:
    getter = supported.get(term.field)
    if getter is None and supported.keys() == _METADATA.keys():
        raise errors.BadRequest(
            f'"{term.field}" is not a known field selector: '
            'only "metadata.name", "metadata.namespace"'
        )
    if getter is None:
        raise errors.BadRequest(f"field label not supported: {term.field}")
    return getter


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _split(text: str) -> list[str]:
    """Splits at commas that have no backslash before them. Escapes are kept."""
    parts, part, escaped = [], "", False
    for char in text:
        if char == "," and not escaped:
            parts.append(part)
            part = ""
        else:
            part += char
        escaped = char == "\\" and not escaped
    return [*parts, part]


def _term(part: str, text: str) -> FieldTerm:
    for index, char in enumerate(part):
        if part.startswith("!=", index):
            return FieldTerm(part[:index], True, _unescape(part[index + 2 :]))
        if char == "=":
            skip = 2 if part.startswith("==", index) else 1
            return FieldTerm(part[:index], False, _unescape(part[index + skip :]))
    raise errors.BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    plain, escaped = "", False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise errors.BadRequest(
                    f"invalid field selector: invalid escape sequence: \\{char}"
                )
            plain, escaped = plain + char, False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise errors.BadRequest(
                f"invalid field selector: unescaped character in value: '{char}'"
            )
        else:
            plain += char
    if escaped:
        raise errors.BadRequest("invalid field selector: invalid escape sequence: \\")
    return plain


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
