"""All objects of a control plane at one moment, and how they belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import LabelSelector

Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Item:
    """An object and the plural name of its kind with its group."""

    resource: str
    obj: Json = field(repr=False)  # it may be a Secret

    @property
    def metadata(self) -> Json:
        return _mapping(self.obj.get("metadata"))

    @property
    def spec(self) -> Json:
        return _mapping(self.obj.get("spec"))

    @property
    def status(self) -> Json:
        return _mapping(self.obj.get("status"))

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind", ""))

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        """The name, after the namespace if there is one."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        """The object as `Pod web-1`."""
        return f"{self.kind} {self.name}"

    @property
    def conditions(self) -> Sequence[Json]:
        found = self.status.get("conditions")
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []

    def condition(self, name: str) -> Json:
        """Returns the condition of a type, an empty object if there is none."""
        return next((one for one in self.conditions if one.get("type") == name), {})

    @property
    def is_deleting(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))


class Snapshot:
    """Objects, looked up by name, uid and owner."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self._by_name = {(item.resource, item.key): item for item in self.items}

    def find(self, resource: str, namespace: str, name: str) -> Item | None:
        """Returns an object, None if it does not exist."""
        key = f"{namespace}/{name}" if namespace else name
        return self._by_name.get((resource, key))

    def of(self, resource: str, namespace: str | None = None) -> Iterator[Item]:
        """Yields the objects of a kind, in one namespace or in all."""
        for item in self.items:
            if item.resource == resource and namespace in {None, item.namespace}:
                yield item

    @cached_property
    def _by_uid(self) -> Mapping[str, Item]:
        return {item.uid: item for item in self.items}

    @cached_property
    def _dependents(self) -> Mapping[str, Sequence[Item]]:
        found: dict[str, list[Item]] = {}
        for item in self.items:
            for owner in item.metadata.get("ownerReferences") or ():
                found.setdefault(str(owner.get("uid", "")), []).append(item)
        return found

    def owners(self, item: Item) -> Iterator[tuple[str, Item | None]]:
        """Yields the owners of an object by kind and name, with None for those that are gone."""
        for owner in item.metadata.get("ownerReferences") or ():
            name = f"{owner.get('kind', '')} {owner.get('name', '')}"
            yield name, self._by_uid.get(str(owner.get("uid", "")))

    def dependents(self, item: Item) -> Sequence[Item]:
        """Returns the objects that name an object as an owner."""
        return self._dependents.get(item.uid, ()) if item.uid else ()

    def events_about(self, item: Item) -> list[Json]:
        """Returns the Events about an object, the newest last."""
        found = [
            event.obj
            for event in self.of("events")
            if (event.obj.get("involvedObject") or {}).get("uid") == item.uid
            or _regards(event.obj, item)
        ]
        return sorted(found, key=_event_time)


def split_name(name: str) -> tuple[str, str]:
    """Returns the kind and the name of `kind/name`. Raises ValueError."""
    kind, slash, own = name.partition("/")
    if not slash or not own or "/" in own:
        raise ValueError(f"{name!r} is not of the form kind/name, like deployment/web")
    return kind, own


def _mapping(value: Any) -> Json:
    """Returns a part of an object; an empty one for what a custom object may have instead."""
    return value if isinstance(value, Mapping) else {}


def selects(selector: Any, labels: Json | None) -> bool:
    """Reports whether a label selector of an object's spec matches labels."""
    if not isinstance(selector, Mapping):
        return False
    parsed = Selector.from_label_selector(LabelSelector.model_validate(selector))
    return parsed.matches({str(name): str(value) for name, value in (labels or {}).items()})


def _regards(event: Json, item: Item) -> bool:
    """Reports whether an Event without a uid is about an object by its name, as those of nodes."""
    about = event.get("involvedObject") or {}
    if about.get("uid") not in {None, "", item.name}:
        return False
    named = (about.get("kind"), about.get("name"), about.get("namespace") or "")
    return named == (item.kind, item.name, item.namespace)


def _event_time(event: Json) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(one) for one in times if one), "")
