"""The uvicorn configuration of all HTTP servers."""

from __future__ import annotations

import ssl

from kcm.http.serving import DEFAULT_KEEP_ALIVE, TLSFiles, build_config
from kcm.http.upgrades import UpgradableConnection


async def app(scope: object, receive: object, send: object) -> None:
    """An app that sends no response, since it is only configured."""


def test_servers_tell_nothing_of_themselves_and_trust_no_proxy() -> None:
    config = build_config(app)
    assert (config.server_header, config.date_header, config.proxy_headers) == (False,) * 3
    assert (config.lifespan, config.ws, config.access_log) == ("off", "none", False)
    assert config.timeout_keep_alive == DEFAULT_KEEP_ALIVE
    assert not config.is_ssl


def test_a_server_with_its_own_connections_handles_upgrades() -> None:
    config = build_config(app, connection=UpgradableConnection, keep_alive=75, graceful_shutdown=2)
    assert config.http is UpgradableConnection
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (75, 2)


def test_client_certificates_are_asked_for_where_an_authority_is_known() -> None:
    plain = build_config(app, tls=TLSFiles("crt", "key"))
    assert (plain.is_ssl, plain.ssl_cert_reqs, plain.ssl_ca_certs) == (True, ssl.CERT_NONE, None)
    known = build_config(app, tls=TLSFiles("crt", "key", "ca"))
    assert (known.ssl_cert_reqs, known.ssl_ca_certs) == (ssl.CERT_OPTIONAL, "ca")
