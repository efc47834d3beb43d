"""The limits of streams that a node serves."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from kcm.kubelet.server.stream_limits import (
    MOST,
    MOST_OF_NAMESPACE,
    MOST_OF_POD,
    StreamLimits,
    TooManyStreams,
)


def take_streams(stream_limits: StreamLimits, streams: int, namespace: str, pods: int) -> ExitStack:
    held = ExitStack()
    for number in range(streams):
        held.enter_context(stream_limits.acquire(namespace, f"pod-{number % pods}"))
    return held


@pytest.mark.parametrize(
    ("streams", "pods", "refused", "served"),
    [
        (MOST_OF_POD, 1, ("shop", "pod-0"), ("shop", "pod-1")),
        (MOST_OF_NAMESPACE, 10, ("shop", "other"), ("bank", "pod-0")),
    ],
)
def test_a_pod_and_a_namespace_have_their_share_and_leave_the_rest(
    streams: int, pods: int, refused: tuple[str, str], served: tuple[str, str]
) -> None:
    stream_limits = StreamLimits()
    with take_streams(stream_limits, streams, "shop", pods):
        with pytest.raises(TooManyStreams, match="close some"), stream_limits.acquire(*refused):
            pass
        with stream_limits.acquire(*served):
            pass
    with stream_limits.acquire(*refused):
        pass


def test_the_node_has_an_end_too() -> None:
    stream_limits = StreamLimits()
    each = MOST_OF_NAMESPACE
    with ExitStack() as held:
        for number in range(MOST // each):
            held.enter_context(take_streams(stream_limits, each, f"ns-{number}", 10))
        with pytest.raises(TooManyStreams, match="this node"), stream_limits.acquire("last", "pod"):
            pass
