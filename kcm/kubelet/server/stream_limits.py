"""Limits the streams (exec, attach, port-forward, followed logs) that a node serves at a time.

Guarantees: the streams of one pod, or of one namespace, never use up the limit of the node. The
connections that port-forwards make have limits of their own, as one stream may make many, and each
takes a descriptor of the kubelet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from kcm.errors import ApiError

MOST, MOST_OF_NAMESPACE, MOST_OF_POD = 256, 128, 32
MOST_FORWARDED, MOST_FORWARDED_OF_NAMESPACE, MOST_FORWARDED_OF_POD = 512, 256, 128


class TooManyStreams(ApiError):  # noqa: N818 - as its siblings in kcm.errors
    """the node, the namespace or the pod has as many open streams as it may"""

    code = 429
    reason = "TooManyRequests"


class StreamLimits:
    """Counts the open streams. It is used in the event loop's thread only."""

    _bounds = (MOST, MOST_OF_NAMESPACE, MOST_OF_POD)
    _what = "streams open (exec, attach, port-forward, logs -f)"

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def acquire(self, namespace: str, pod: str) -> Iterator[None]:
        """Counts a stream as open within this context. Raises TooManyStreams."""
        names = ("this node", f"namespace {namespace}", f"pod {namespace}/{pod}")
        bounds = dict(zip(names, self._bounds, strict=True))
        for who, most in bounds.items():
            if self._open[who] >= most:
                raise TooManyStreams(
                    f"{who} has {most} {self._what}, which is as many as it may: close some"
                )
        self._open.update(bounds.keys())
        try:
            yield
        finally:
            self._open.subtract(bounds.keys())
            self._open += Counter()  # removes counts of 0


class ForwardLimits(StreamLimits):
    """Counts the open connections of all port-forwards."""

    _bounds = (MOST_FORWARDED, MOST_FORWARDED_OF_NAMESPACE, MOST_FORWARDED_OF_POD)
    _what = "forwarded connections open"
