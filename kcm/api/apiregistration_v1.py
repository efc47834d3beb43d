"""apiregistration.k8s.io/v1: APIService.

Source: staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/types.go and
v1/helper/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Int32, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time

GROUP = "apiregistration.k8s.io"
AVAILABLE = "Available"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"  # label of those that the server writes
ON_START, CONTINUOUSLY = "onstart", "true"  # its values
DEFAULT_PORT = 443
LOCAL = (TRUE, "Local")  # status and reason of what the server itself serves


class ServiceReference(Model):
    """The Service behind which the server of an API listens."""

    namespace: str | None = None
    name: str | None = None
    port: Int32 | None = None


class APIServiceSpec(Model):
    """A version of an API group, and the server that serves it."""

    service: ServiceReference | None = None
    group: str | None = None
    version: str | None = None
    insecure_skip_tls_verify: bool | None = Field(default=None, alias="insecureSkipTLSVerify")
    ca_bundle: str | None = None  # PEM in base64
    group_priority_minimum: Int32 = 0
    version_priority: Int32 = 0


class APIServiceCondition(Model):
    """One aspect of the state of an APIService."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class APIServiceStatus(Model):
    """Whether the server of an API can be reached."""

    conditions: Annotated[list[APIServiceCondition] | None, MergeKey("type")] = None


class APIService(KubeObject):
    """Says which server serves a version of an API group. Its name is `version.group`."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "APIService"
    spec: APIServiceSpec = Field(default_factory=APIServiceSpec)
    status: APIServiceStatus = Field(default_factory=APIServiceStatus)


def find_condition(service: APIService, kind: str = AVAILABLE) -> APIServiceCondition | None:
    """Returns the condition of this type, or None."""
    return next((c for c in service.status.conditions or () if c.type == kind), None)


def is_true(service: APIService, kind: str = AVAILABLE) -> bool:
    """Reports whether the APIService has a condition of this type that is True."""
    condition = find_condition(service, kind)
    return condition is not None and condition.status == TRUE


def with_condition(service: APIService, new: APIServiceCondition) -> APIService:
    """Returns the APIService with a condition, which replaces one of the same type.

    The time of the last transition stays as it was unless the condition's status changes.
    """
    conditions = list(service.status.conditions or ())
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old if old.status == new.status else new
            conditions[place] = new.replace(last_transition_time=since.last_transition_time)
            break
    else:
        conditions.append(new)
    return service.with_status(service.status.replace(conditions=conditions))


def local_condition(now: datetime) -> APIServiceCondition:
    """Returns the condition of an API that the server itself serves."""
    return APIServiceCondition(
        type=AVAILABLE,
        status=LOCAL[0],
        last_transition_time=now.replace(microsecond=0),
        reason=LOCAL[1],
        message="Local APIServices are always available",
    )


def name_of(group: str, version: str) -> str:
    """Returns the name of the APIService of a version of an API group."""
    return f"{version}.{group}"
