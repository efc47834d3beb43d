"""A fork of the template before it serves."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from kcm.testing.envtest.kube_apiserver import LENGTH
from kcm.testing.envtest.serving import serve


@pytest.mark.parametrize("sent", [b"", (1000).to_bytes(LENGTH, "big") + b'{"flags": '])
def test_a_program_that_ends_before_it_has_said_everything_is_not_served(
    tmp_path: Path, sent: bytes
) -> None:
    ours, theirs = socket.socketpair()
    living, ends = os.pipe()
    with ours, theirs, os.fdopen(living), os.fdopen(ends, "w"):
        theirs.sendall(sent)
        theirs.close()
        assert serve(ours, living, tmp_path) == 0
    assert not list(tmp_path.iterdir())
