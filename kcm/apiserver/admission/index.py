"""Finds the policies or webhooks that a request may match, from the watch caches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from kcm import errors
from kcm.api.admissionregistration_v1 import GROUP
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.matching import Matcher
from kcm.apiserver.cache.caches import Caches

_MOST_KEPT = 4096  # sorts of requests for which the matching ones are kept


class Prepared(Protocol):
    """A policy or webhook with its matcher, made once."""

    @property
    def matcher(self) -> Matcher: ...


PreparedT = TypeVar("PreparedT", bound=Prepared)
_Sort = tuple[str, str, str, str]  # group, plural, subresource, operation


class RequestIndex(ABC, Generic[PreparedT]):
    """What is prepared from the objects of some kinds. It is made anew when one has changed."""

    def __init__(self, caches: Caches, models: Sequence[type[KubeObject]]) -> None:
        self.served = caches.scheme
        self._sources = [caches.cache(model.resource) for model in models]
        self._seen: tuple[int, ...] = ()  # the generations of the caches
        self._all: Sequence[PreparedT] = ()
        self._matching: dict[_Sort, Sequence[PreparedT]] = {}

    def find(self, resource: Resource, subresource: str, operation: str) -> Sequence[PreparedT]:
        """Returns those that may match such requests, in their order.

        Policies and webhooks themselves are exempt, so that none can keep everybody from changing
        it. Raises StoreUnavailable while they are not loaded.
        """
        now = tuple(source.generation for source in self._sources)
        if now != self._seen:
            self._rebuild(now)
        if not self._all or resource.group == GROUP:
            return ()
        sort = (resource.group, resource.plural, subresource, operation)
        matching = self._matching.get(sort)
        if matching is None:
            if len(self._matching) >= _MOST_KEPT:
                self._matching.clear()
            matching = self._matching[sort] = [
                prepared
                for prepared in self._all
                if prepared.matcher.may_match(resource, subresource, operation)
            ]
        return matching

    def _rebuild(self, now: tuple[int, ...]) -> None:
        if not all(source.position >= 0 for source in self._sources):
            raise errors.StoreUnavailable("the admission policies are not loaded yet")
        objects = [[entry.obj for entry in source.entries()] for source in self._sources]
        self._all, self._matching, self._seen = self.prepare(*objects), {}, now

    @abstractmethod
    def prepare(self, *objects: Sequence[KubeObject]) -> Sequence[PreparedT]:
        """Returns what is prepared from the objects of each kind, which are sorted by name."""
