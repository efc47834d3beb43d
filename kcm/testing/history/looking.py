"""What a control plane tells about what happened in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kcm import errors
from kcm.testing.history.explanation import Explanation
from kcm.testing.history.invariants import Invariant
from kcm.testing.history.recorder import Recorder
from kcm.testing.history.writes import History, Mark, Write


class Looking:
    """The part of a ControlPlane with which a test looks at what happened."""

    _recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        """Its recorder. Raises ConfigurationError before the start."""
        if self._recorder is None:
            raise errors.ConfigurationError("the control plane has not started: call start()")
        return self._recorder

    def check_invariants(self) -> None:
        """Checks what `never` requires. Raises AssertionError."""
        __tracebackhide__ = True  # of pytest
        if self._recorder is not None:
            self._recorder.check()

    def history(
        self,
        kind: str = "",
        name: str = "",
        namespace: str | None = None,
        since: datetime | int | None = None,
    ) -> History:
        """Returns the writes so far, in the store's order.

        `kind` is a kind as kubectl names it, `namespace` None means all; a cluster-scoped object is
        in the namespace "". `since` is a time of the control plane's clock, or a resourceVersion
        after which the history begins. Raises UnknownKind and StoreUnavailable.
        """
        return self.recorder.history(kind, name, namespace, since)

    def explain(self, name: str, namespace: str = "default") -> Explanation:
        """Explains why the object `kind/name` is as it is, or what became of it.

        Raises ValueError, UnknownKind and StoreUnavailable.
        """
        return self.recorder.explain(name, namespace)

    def note(self, text: str) -> Mark:
        """Puts a line into the timeline, and returns it."""
        return self.recorder.mark(text)

    def never(self, condition: Callable[[Write], object], what: str = "") -> Invariant:
        """Requires that no write from now on fulfils a condition.

        It is checked with every write whenever the control plane waits or stops, at the end of a
        block if it is used with `with`, and at the end of a test with the fixtures. Then
        AssertionError is raised, with the write and what came before it.
        """
        name = what or getattr(condition, "__name__", "") or "the condition"
        return self.recorder.never(condition, name)
