"""What the flags of the program `kube-apiserver` and its environment ask for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click

from kcm import errors
from kcm.apimachinery.durations import parse_duration
from kcm.apiserver.command import command, read_options
from kcm.apiserver.running import ServerOptions
from kcm.store.admission.plugins import check_enabled
from kcm.testing.envtest.runtime_config import check_runtime_config

CONTROLLERS = "KCM_ENVTEST_CONTROLLERS"
NODES = "KCM_ENVTEST_NODES"
PAIR = ("apiserver.crt", "apiserver.key")  # the files in --cert-dir

# Flags that are settings of kcm, by the flag.
_SETTINGS = {
    "default-not-ready-toleration-seconds": "default_not_ready_toleration_seconds",
    "default-unreachable-toleration-seconds": "default_unreachable_toleration_seconds",
    "disable-admission-plugins": "disable_admission_plugins",
    "etcd-prefix": "prefix",
    "service-cluster-ip-range": "service_cluster_ip_range",
    "service-node-port-range": "service_node_port_range",
}
# What the real server does if a flag is not given, where kcm's own command does something else.
_DEFAULTS = {
    "anonymous-auth": "true",
    "authorization-mode": "AlwaysAllow",
    "bind-address": "0.0.0.0",
    "secure-port": "6443",
    "service-cluster-ip-range": "10.0.0.0/24",
}
# How flags of `kcm apiserver` differ: a flag for each value, a flag without a value.
_SEVERAL = ("service-account-issuer", "service-account-key-file")
_SWITCHES = ("anonymous-auth", "enable-bootstrap-token-auth")


@dataclass(frozen=True)
class EnvtestOptions:
    """An API server, and what runs beside it: by default nothing."""

    api: ServerOptions
    settings: Mapping[str, Any]  # of kcm, by their names
    controllers: tuple[str, ...] = ()
    nodes: int = 0
    signing_key: str = ""  # the path of the key for service account tokens, "" for a new one
    cert_dir: str = ""  # where to leave the certificate that the server makes itself, if anywhere

    @property
    def is_bare(self) -> bool:
        """Reports whether there are neither controllers nor nodes."""
        return not (self.controllers or self.nodes)


def asks_for_controllers(environment: Mapping[str, str]) -> bool:
    """Reports whether the environment asks for more than an API server."""
    return bool(environment.get(CONTROLLERS) or environment.get(NODES))


def read(values: Mapping[str, str], environment: Mapping[str, str]) -> EnvtestOptions:
    """Returns the options for the flags that are acted on. Raises ConfigurationError."""
    given = {**_DEFAULTS, **{flag: value for flag, value in values.items() if value}}
    check_enabled(given.pop("enable-admission-plugins", ""))
    check_runtime_config(given.pop("runtime-config", ""))
    folder = given.pop("cert-dir", "")
    has_pair = bool(folder) and all(os.path.exists(os.path.join(folder, name)) for name in PAIR)
    if has_pair and "tls-cert-file" not in given:
        given |= {
            flag: os.path.join(folder, name)
            for flag, name in zip(("tls-cert-file", "tls-private-key-file"), PAIR, strict=True)
        }
    settings = {name: given.pop(flag) for flag, name in _SETTINGS.items() if flag in given}
    nodes = environment.get(NODES) or "0"
    if not nodes.isdigit():
        raise errors.ConfigurationError(f"{NODES}={nodes} is no number: use 0 or more")
    return EnvtestOptions(
        api=_read_api(given),
        settings={"admission_kubeconfig": "", **settings},
        controllers=tuple(filter(None, environment.get(CONTROLLERS, "").split(","))),
        nodes=int(nodes),
        signing_key=values.get("service-account-signing-key-file", ""),
        cert_dir="" if has_pair or "tls-cert-file" in values else folder,
    )


def _read_api(given: dict[str, str]) -> ServerOptions:
    """Returns the options of the API server, which the command `kcm apiserver` reads."""
    given["port"] = given.pop("secure-port")
    if "request-timeout" in given:
        given["request-timeout"] = str(parse_duration(given["request-timeout"]).total_seconds())
    arguments = []
    for flag, value in given.items():
        if flag in _SWITCHES:
            arguments += [f"--{flag}"] if value == "true" else []
        elif flag in _SEVERAL:
            arguments += [f"--{flag}={part}" for part in value.split(",")]
        else:
            arguments.append(f"--{flag}={value}")
    try:
        context = command.make_context("kube-apiserver", arguments)
    except click.ClickException as error:
        raise errors.ConfigurationError(error.format_message()) from error
    return replace(read_options(**context.params), cluster_authority=True)
