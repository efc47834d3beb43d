"""Where a node's API listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kcm import errors
from kcm.kubelet.assembly.duties import Duties
from kcm.kubelet.duty_options import DutyOptions
from kcm.kubelet.options import KubeletOptions


def test_another_port_will_do_unless_one_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = KubeletOptions(node_name="n1", root_dir=tmp_path, port=port)
        duties = Duties(options)
        assert duties.options.port not in (0, port)
        duties.stop()
        with pytest.raises(errors.PortTaken, match="--port"):
            Duties(options, DutyOptions(own_port=True))
