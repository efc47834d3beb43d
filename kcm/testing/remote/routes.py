"""The paths of the HTTP API, and the methods of a control plane that they call.

A body is an object whose names are those of the method's arguments, `for` in place of `for_`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kcm import KUBERNETES_VERSION, __version__, errors
from kcm.apimachinery.meta_v1 import format_micro_time
from kcm.testing.control_plane.plane import ControlPlane
from kcm.testing.faults.fault import Fault
from kcm.testing.history.watched import Watched
from kcm.testing.remote import documents
from kcm.testing.remote.documents import Document

VERSION = "v1"
_ON_NODES = frozenset(
    {"stop", "start", "partition", "full", "memory_pressure", "pid_pressure", "not_ready", "heal"}
)
_ON_PODS = frozenset({"crash", "oom", "ready", "not_ready", "log", "heal"})
_FAULTS = frozenset({"api", "watches", "stale_lists", "webhook"})


class Routes:
    """Answers the requests of the HTTP API about one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._faults: dict[int, Fault] = {}
        self._numbers = itertools.count(1)
        self._routes: Sequence[tuple[str, str, Callable[..., Any]]] = (
            ("GET", "", self._describe),
            ("GET", "clock", self._show_clock),
            ("POST", "clock/freeze", self._freeze_clock),
            ("POST", "clock/run", self._run_clock),
            ("POST", "clock/advance", self._advance_clock),
            ("POST", "clock/to", self._move_clock_to),
            ("POST", "settle", self._settle),
            ("GET", "faults", self._list_faults),
            ("POST", "faults/{kind}", self._add_fault),
            ("GET", "faults/{number}", self._get_fault),
            ("DELETE", "faults", self._clear_faults),
            ("DELETE", "faults/{number}", self._remove_fault),
            ("GET", "nodes", self._list_nodes),
            ("POST", "nodes/{name}/{action}", self._act_on_node),
            ("POST", "pods/{namespace}/{name}/{action}", self._act_on_pod),
            ("GET", "history", self._show_history),
            ("GET", "timeline", self._show_timeline),
            ("POST", "notes", self._add_note),
            ("POST", "pages", self._write_page),
            ("GET", "explain", self._explain),
        )

    def answer(self, method: str, path: str, values: Mapping[str, Any]) -> Any:
        """Returns the answer to a request. `values` are those of its body or its query.

        Raises NotFound, ValueError, KcmError and AssertionError.
        """
        root, _, rest = path.strip("/").partition("/")
        if root != VERSION:
            raise errors.NotFound(f"there is no {path}: this API is at /{VERSION}")
        for verb, pattern, function in self._routes:
            segments = _match(pattern, rest)
            if verb == method and segments is not None:
                return call(partial(function, *segments), values)
        raise errors.NotFound(f"there is no {method} {path}")

    def _describe(self) -> Document:
        return {
            "version": VERSION,
            "kcm": __version__,
            "kubernetes": KUBERNETES_VERSION,
            "url": self._plane.url,
            "kubeconfig": str(self._plane.kubeconfig),
        }

    # --- the clock

    def _show_clock(self) -> Document:
        return documents.show_clock(self._plane.clock)

    def _freeze_clock(self) -> Document:
        self._plane.clock.freeze()
        return self._show_clock()

    def _run_clock(self) -> Document:
        self._plane.clock.run()
        return self._show_clock()

    def _advance_clock(self, duration: str | float) -> Document:
        return documents.show_rest(self._plane.clock.advance(duration))

    def _move_clock_to(self, time: str) -> Document:
        return documents.show_rest(self._plane.clock.to(time))

    def _settle(self, timeout: str | float = "60s", quiet: str | float = 0.0) -> Document:
        return documents.show_rest(self._plane.settle(timeout, quiet=quiet))

    # --- what fails

    def _add_fault(self, kind: str, /, **arguments: Any) -> Document:
        if kind not in _FAULTS:
            raise errors.NotFound(
                f"there are no faults of {kind}: use {', '.join(sorted(_FAULTS))}"
            )
        if "for" in arguments:
            arguments["for_"] = arguments.pop("for")
        fault = call(getattr(self._plane.faults, kind), arguments)
        number = next(self._numbers)
        self._faults[number] = fault
        return documents.show_fault(number, fault)

    def _list_faults(self) -> list[Document]:
        return [documents.show_fault(number, fault) for number, fault in self._faults.items()]

    def _find_fault(self, number: str) -> Fault:
        fault = self._faults.get(int(number)) if number.isdigit() else None
        if fault is None:
            raise errors.NotFound(f"there is no fault {number}")
        return fault

    def _get_fault(self, number: str) -> Document:
        return documents.show_fault(int(number), self._find_fault(number))

    def _remove_fault(self, number: str) -> Document:
        fault = self._find_fault(number)
        fault.remove()
        del self._faults[int(number)]
        return documents.show_fault(int(number), fault)

    def _clear_faults(self) -> list[Document]:
        shown = self._list_faults()
        self._plane.faults.clear()
        self._faults.clear()
        return shown

    def _list_nodes(self) -> list[Document]:
        return [documents.show_node(node) for node in self._plane.nodes]

    def _act_on_node(self, name: str, action: str) -> Document:
        _require(action, _ON_NODES)
        node = self._plane.nodes[name]
        getattr(node, action)()
        return documents.show_node(node)

    def _act_on_pod(self, namespace: str, name: str, action: str, /, **arguments: Any) -> Document:
        _require(action, _ON_PODS)
        call(getattr(self._plane.pods[f"{namespace}/{name}"], action), arguments)
        return {"name": name, "namespace": namespace}

    # --- what happened

    def _show_history(
        self, kind: str = "", name: str = "", namespace: str | None = None, since: str = "0"
    ) -> Document:
        return documents.show_history(
            self._plane.history(kind, name, namespace, _read_version(since))
        )

    def _show_timeline(self, namespace: str | None = None, since: str = "0") -> Document:
        return {"text": self._watch(namespace, since).timeline()}

    def _watch(self, namespace: str | None, since: str) -> Watched:
        return Watched(self._plane, namespace, _read_version(since), ())

    def _add_note(self, text: str) -> Document:
        mark = self._plane.note(text)
        return {"time": format_micro_time(mark.time), "after": str(mark.after)}

    def _write_page(
        self,
        *,
        folder: str,
        test: str,
        outcome: str = "failed",
        failure: str = "",
        namespace: str | None = None,
        since: str = "0",
    ) -> Document:
        watched = self._watch(namespace, since)
        return {"text": watched.write_page(Path(folder), test, outcome, failure)}

    def _explain(self, object: str, namespace: str = "default") -> Document:
        return documents.show_explanation(self._plane.explain(object, namespace))


def _match(pattern: str, path: str) -> list[str] | None:
    """Returns the segments of a path where the pattern has names, None if they do not match."""
    names, segments = pattern.split("/"), path.split("/")
    if len(names) != len(segments):
        return None
    pairs = list(zip(names, segments, strict=True))
    if any(name != segment for name, segment in pairs if not name.startswith("{")):
        return None
    return [segment for name, segment in pairs if name.startswith("{")]


def call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Calls a function with named values. Raises ValueError for a name that it does not take."""
    signature = inspect.signature(function)
    try:
        signature.bind(**values)
    except TypeError as error:
        names = [name.rstrip("_") for name in signature.parameters]
        raise ValueError(f"{error}: this takes {', '.join(names) or 'nothing'}") from None
    return function(**values)


def _require(action: str, actions: frozenset[str]) -> None:
    if action not in actions:
        raise errors.NotFound(f"there is no {action}: use {', '.join(sorted(actions))}")


def _read_version(text: str) -> int:
    if not str(text).isdigit():
        raise ValueError(f"since={text!r} is no resourceVersion")
    return int(text)
