from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kcm import errors
from kcm.clock import RealClock
from kcm.errors import PortTaken
from kcm.manager.access import PageAccess
from kcm.manager.serving import HealthServer, bind, read_token
from kcm.options.groups import ServingOptions
from kcm.testing.clock import FakeClock
from tests.ports import free_port


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_a_taken_port_is_named_with_its_flag(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    with pytest.raises(PortTaken, match=rf"port {port} on 127\.0\.0\.1 .* --secure-port"):
        HealthServer(PageAccess(), ServingOptions(secure_port=port), RealClock()).start()


def test_an_address_of_another_machine_is_refused() -> None:
    options = ServingOptions(
        bind_address="192.0.2.1",
        secure_port=free_port(),
        tls_cert_file="c",
        tls_private_key_file="k",
        bearer_token_file="t",
    )
    with pytest.raises(errors.ConfigurationError, match="--bind-address"):
        bind(options)


def test_a_port_that_another_serves_is_waited_for(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    options = ServingOptions(secure_port=port, secure_port_wait=True)
    server = HealthServer(PageAccess(), options, _Impatient())
    server.start()
    taken.close()
    assert _answers(port)
    server.stop()


def test_without_a_port_nothing_is_served() -> None:
    threads = set(threading.enumerate())
    server = HealthServer(PageAccess(), ServingOptions(secure_port=0), FakeClock())
    server.start()
    assert set(threading.enumerate()) <= threads
    server.stop()


def test_stopping_does_not_wait_for_open_connections() -> None:
    port = free_port()
    server = HealthServer(PageAccess(), ServingOptions(secure_port=port), RealClock())
    server.start()
    assert _answers(port)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as held:
        held.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")  # and never ends
        server.stop()
        assert held.recv(1) == b""  # the server closed it, since this side did not
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/")


def test_the_token_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    assert read_token(ServingOptions(bearer_token_file=str(path))) == "abc"
    assert read_token(ServingOptions()) == ""


@pytest.mark.parametrize("content", [None, " \n"])
def test_a_missing_or_empty_token_file_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(errors.ConfigurationError, match="--bearer-token-file"):
        read_token(ServingOptions(bearer_token_file=str(path)))


def test_bad_tls_files_are_named() -> None:
    options = ServingOptions(tls_cert_file="/nowhere", tls_private_key_file="/nowhere")
    with pytest.raises(errors.ConfigurationError, match="--tls-cert-file /nowhere"):
        HealthServer(PageAccess(), options, RealClock())


class _Impatient(RealClock):
    def wait(self, event: threading.Event, timeout: float) -> bool:
        return super().wait(event, min(timeout, 0.01))


def _answers(port: int) -> bool:
    transport = httpx.HTTPTransport(retries=8)
    with httpx.Client(transport=transport) as client:
        return client.get(f"http://127.0.0.1:{port}/").status_code == 404
