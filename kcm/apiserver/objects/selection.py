"""What a list or watch is narrowed to, and how fresh it must be.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go and
staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.labels import Selector
from kcm.apiserver.cache.watch_cache import Entry
from kcm.apiserver.http.responses import read_number
from kcm.apiserver.request_info import RequestInfo

_MATCHES = ("", "Exact", "NotOlderThan")


@dataclass(frozen=True)
class ObjectSelection:
    """The selectors and the namespace of a list or watch."""

    resource: Resource
    namespace: str = ""
    labels: Selector | None = None
    fields: FieldSelector | None = None

    @classmethod
    def of(cls, info: RequestInfo, query: Mapping[str, str]) -> ObjectSelection:
        """Returns the selection of a list or watch. Raises BadRequest."""
        labels = Selector.parse(query.get("labelSelector", ""))
        fields = FieldSelector.parse(query.get("fieldSelector", ""))
        if info.name:
            fields = FieldSelector(
                (*fields.terms, *FieldSelector.parse(f"metadata.name={info.name}").terms)
            )
        fields.check(info.resource)
        return cls(
            info.resource,
            info.namespace,
            None if labels.empty else labels,
            None if fields.empty else fields,
        )

    @property
    def everything(self) -> bool:
        """Whether no selector narrows it; a namespace may."""
        return self.labels is None and self.fields is None

    def matches(self, entry: Entry) -> bool:
        """Reports whether the selectors match this state of an object."""
        if self.labels is not None and not self.labels.matches(entry.obj.metadata.labels):
            return False
        return self.fields is None or self.fields.matches(entry.obj, self.resource)

    def covers(self, key: str) -> bool:
        """Reports whether an object is in the namespace."""
        return not self.namespace or key.startswith(f"{self.namespace}/")


@dataclass(frozen=True)
class Freshness:
    """resourceVersion and resourceVersionMatch. `version` is None where the request has none."""

    version: int | None = None
    match: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Freshness:
        """Returns what a request demands. Raises BadRequest."""
        version, match = (
            read_number(query, "resourceVersion"),
            query.get("resourceVersionMatch", ""),
        )
        if match not in _MATCHES:
            raise errors.BadRequest(f'resourceVersionMatch: Unsupported value: "{match}"')
        if match == "Exact" and not version:
            raise errors.BadRequest("resourceVersionMatch Exact needs a resourceVersion above 0")
        if match and version is None and "sendInitialEvents" not in query:
            raise errors.BadRequest(
                "resourceVersionMatch: Forbidden: it needs a resourceVersion beside it"
            )
        return cls(version, match)


@dataclass(frozen=True)
class Page:
    """How much of a list is wanted."""

    limit: int = 0
    continue_: str = ""

    fresh: Freshness = field(default_factory=Freshness)

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Page:
        """Returns the page that a request wants. Raises BadRequest."""
        fresh = Freshness.of(query)
        if query.get("continue") and fresh.match:
            raise errors.BadRequest("resourceVersionMatch is forbidden when continue is provided")
        if query.get("continue") and fresh.version:
            raise errors.BadRequest(
                "specifying resource version is not allowed when using continue"
            )
        return cls(read_number(query, "limit") or 0, query.get("continue", ""), fresh)
