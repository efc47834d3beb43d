"""What is said of an endpoint of a container runtime, and how long its start is waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from kcm import errors
from kcm.kubelet.runtime.cri.services import connect
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.runtime.cri.fake_server import serve


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("tcp://127.0.0.1:1", "is not of the form unix:///run/containerd/containerd.sock"),
        ("unix://relative.sock", "is not of the form"),
        ("unix:///no/such.sock", "there is no socket /no/such.sock; is the container runtime"),
    ],
)
def test_an_endpoint_that_cannot_be_is_a_sentence(endpoint: str, words: str) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        connect(endpoint, FakeClock())
    assert words in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="others are refused before")
def test_a_server_without_cri_is_a_sentence(tmp_path: Path) -> None:
    with (
        serve(tmp_path, {}) as channel,
        pytest.raises(errors.ConfigurationError, match="does not speak CRI v1"),
    ):
        connect(channel.endpoint, FakeClock())


@pytest.mark.skipif(os.geteuid() != 0, reason="others are refused before")
def test_a_runtime_that_starts_at_the_same_time_is_waited_for(tmp_path: Path) -> None:
    failures = iter(["server is not initialized yet"] * 2)

    def answer(_: Any, context: grpc.ServicerContext) -> Mapping[str, Any]:
        for failure in failures:
            context.abort(grpc.StatusCode.UNKNOWN, failure)
        return {}

    with serve(tmp_path, {"Version": answer}) as channel:
        connect(channel.endpoint, FakeClock()).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="others are refused before")
def test_a_runtime_that_does_not_start_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cri.sock"
    with socket.socket(socket.AF_UNIX) as former:
        former.bind(str(path))  # and does not listen
    with pytest.raises(errors.ConfigurationError, match="the container runtime does not answer: "):
        connect(f"unix://{path}", FakeClock())
