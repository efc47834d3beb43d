"""Creates the FlowSchemas and PriorityLevelConfigurations of every cluster, and corrects them.

A mandatory one gets its spec back. A suggested one does while its annotation
`apf.kubernetes.io/autoupdate-spec` is true, or, without a valid one, while nobody has changed its
spec. One that is deleted is created again. kcm does not act on them: requests are limited by
`--max-requests-inflight`.

Source: pkg/registry/flowcontrol/ensurer and rest/storage_flowcontrol.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration
from kcm.api.priority_levels import (
    AUTOUPDATE,
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
)
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

SYNC_EVERY = 60.0  # seconds, as upstream
_Configuration = FlowSchema | PriorityLevelConfiguration
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def ensure(store: Store) -> None:
    """Creates or corrects all of them. Raises StoreUnavailable."""
    suggested: list[_Configuration] = [*SUGGESTED_LEVELS, *SUGGESTED_SCHEMAS]
    mandatory: list[_Configuration] = [*MANDATORY_LEVELS.values(), *MANDATORY_SCHEMAS.values()]
    _ensure(store, suggested, mandatory=False)
    _ensure(store, mandatory, mandatory=True)


def _ensure(store: Store, wanted: Iterable[_Configuration], *, mandatory: bool) -> None:
    objects = list(wanted)
    keys = [(scheme.resource_of(obj), obj.key) for obj in objects]
    for obj, stored in zip(objects, store.get_all(keys), strict=True):
        try:
            _ensure_one(store, obj, stored, mandatory)
        except errors.ApiError as error:  # its next pass tries again, and the others need not wait
            log.warning(
                "An object of flow control cannot be corrected", name=obj.name, error=error.message
            )


def _ensure_one(store: Store, wanted: _Configuration, stored: object, mandatory: bool) -> None:
    if stored is None:  # missing, or it cannot be read
        resource = scheme.resource_of(wanted)
        with suppress(errors.NotFound):
            try:
                store.get(resource, wanted.key)
            except errors.Damaged:
                store.purge(resource, wanted.key)
        with suppress(errors.AlreadyExists):
            store.create(wanted)
        return
    assert isinstance(stored, FlowSchema | PriorityLevelConfiguration)
    if (corrected := correct(stored, wanted, mandatory=mandatory)) is not None:
        with suppress(errors.NotFound):
            store.update(corrected)


def correct(
    current: _Configuration, wanted: _Configuration, *, mandatory: bool
) -> _Configuration | None:
    """Returns `current` with the spec and annotation that it should have.

    Returns None if it has them.
    """
    follows = mandatory or _follows(current)
    noted = _truth(current.annotations.get(AUTOUPDATE, "")) == follows
    wanted_spec = _keep_exempt(current, wanted)
    spec = wanted_spec if follows else current.spec
    if noted and spec == current.spec:
        return None
    annotations = dict(current.annotations)
    if not noted:
        annotations[AUTOUPDATE] = "true" if follows else "false"
    return current.replace(spec=spec).with_metadata(annotations=annotations)


def _keep_exempt(current: _Configuration, wanted: _Configuration) -> object:
    """Returns the wanted spec, with the shares of an exempt level as they are."""
    levels = PriorityLevelConfiguration
    if not (isinstance(current, levels) and isinstance(wanted, levels)):
        return wanted.spec
    if wanted.spec.exempt is None:
        return wanted.spec
    return wanted.spec.replace(exempt=current.spec.exempt or wanted.spec.exempt)


def _follows(current: _Configuration) -> bool:
    """Reports whether a suggested object is to get the spec of this version of kcm."""
    truth = _truth(current.annotations.get(AUTOUPDATE, ""))
    return current.metadata.generation == 1 if truth is None else truth


def _truth(text: str) -> bool | None:
    """Returns what Go's ParseBool makes of a text, None if it is no truth value."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None
