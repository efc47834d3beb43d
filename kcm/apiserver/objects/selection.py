"""The selectors, the page and the freshness that a list or watch asks for.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go and
staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go, Kubernetes
1.33 with the feature gate WatchList on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.field_errors import forbidden, not_supported
from kcm.apimachinery.labels import Selector
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.http.responses import read_number
from kcm.apiserver.request_info import RequestInfo

_NOT_OLDER = "NotOlderThan"
_MATCH = "resourceVersionMatch"


def check_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Checks the parameters that exclude each other in a list or watch. Raises Invalid."""
    match, initial = query.get(_MATCH, ""), "sendInitialEvents" in query
    faults = _watch_faults(query, match, initial) if watch else _list_faults(query, match, initial)
    if causes := list(faults):
        raise errors.Invalid(
            causes, kind="ListOptions.meta.k8s.io", resource="listoptions.meta.k8s.io"
        )


def _watch_faults(
    query: Mapping[str, str], match: str, initial: bool
) -> Iterator[errors.FieldError]:
    if initial and match != _NOT_OLDER:
        yield forbidden(
            _MATCH, f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}"
        )
    if not match:
        return
    if not initial:
        yield forbidden(
            _MATCH,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    if match != _NOT_OLDER:
        yield not_supported(_MATCH, match, (_NOT_OLDER,))
    if query.get("continue"):
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def _list_faults(
    query: Mapping[str, str], match: str, initial: bool
) -> Iterator[errors.FieldError]:
    if match and not query.get("resourceVersion"):
        yield forbidden(
            _MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match and query.get("continue"):
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", "Exact", _NOT_OLDER):
        yield not_supported(_MATCH, match, ("Exact", _NOT_OLDER, ""))
    if match == "Exact" and query.get("resourceVersion") == "0":
        yield forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if initial:
        yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


@dataclass(frozen=True)
class ObjectSelection:
    """The selectors and the namespace of a list or watch."""

    resource: Resource
    namespace: str = ""
    labels: Selector | None = None
    fields: FieldSelector | None = None

    @classmethod
    def of(cls, info: RequestInfo, query: Mapping[str, str]) -> ObjectSelection:
        """Returns the selection that a list or watch asks for. Raises BadRequest."""
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
        """Reports whether there are no selectors. The namespace does not count as one."""
        return self.labels is None and self.fields is None

    def matches(self, entry: Entry) -> bool:
        """Reports whether the selectors match this state of an object."""
        if self.labels is not None and not self.labels.matches(entry.obj.metadata.labels):
            return False
        return self.fields is None or self.fields.matches(entry.obj, self.resource)

    def covers(self, key: str) -> bool:
        """Reports whether the object with this key is in the namespace."""
        return not self.namespace or key.startswith(f"{self.namespace}/")


@dataclass(frozen=True)
class Freshness:
    """The parameters resourceVersion and resourceVersionMatch.

    `version` is None if it is not given.
    """

    version: int | None
    match: str

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Freshness:
        """Returns the freshness that a request asks for. Raises BadRequest."""
        return cls(read_number(query, "resourceVersion"), query.get(_MATCH, ""))


@dataclass(frozen=True)
class Page:
    """The part of a list that a request asks for. A limit of 0 means no limit."""

    limit: int
    continue_: str
    fresh: Freshness

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Page:
        """Returns the page that a list asks for. Raises BadRequest and Invalid."""
        check_options(query, watch=False)
        fresh = Freshness.of(query)
        if query.get("continue") and fresh.version:
            raise errors.BadRequest(
                "specifying resource version is not allowed when using continue"
            )
        return cls(_read_limit(query), query.get("continue", ""), fresh)


def _read_limit(query: Mapping[str, str]) -> int:
    """Returns the most objects that a list may have, 0 without a limit, which a negative number
    means as well. Raises BadRequest.
    """
    if query.get("limit", "")[:1] == "-" and query["limit"][1:].isdecimal():
        return 0
    return read_number(query, "limit") or 0
