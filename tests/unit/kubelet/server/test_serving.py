"""The address and port that a node's HTTP API listens on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kcm import errors
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.server.serving import listen_for_node


def test_another_port_will_do_unless_one_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = KubeletOptions(node_name="n1", root_dir=tmp_path, port=port)
        with listen_for_node(options) as listener:
            assert listener.getsockname()[1] not in (0, port)
        required = KubeletOptions(node_name="n1", root_dir=tmp_path, port=port, port_required=True)
        with pytest.raises(errors.PortTaken, match="--port"):
            listen_for_node(required)
