"""Credentials for images from plugins of the node: programs that a cloud or a registry provides.

A plugin is asked for an image that matches its patterns, by a CredentialProviderRequest on its
standard input, and answers with a CredentialProviderResponse. Answers are kept as long as they say.
A plugin that fails gives no credentials, and the image is pulled without.

Source: pkg/credentialprovider/plugin, Kubernetes 1.36. Departures: one file of configuration, no
folder of them, and no plugins that want tokens of service accounts (tokenAttributes).
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kcm import errors
from kcm.apimachinery.durations import parse_duration
from kcm.clock import Clock
from kcm.kubelet.images.credentials import match_registry, name_registry
from kcm.kubelet.images.store import Credentials

log = structlog.get_logger("kcm.kubelet")

_TIMEOUT = 60.0  # seconds
_LONGEST = 1024**2  # characters of an answer
_VERSIONS = tuple(f"credentialprovider.kubelet.k8s.io/{v}" for v in ("v1", "v1beta1", "v1alpha1"))


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Variable(_Message):
    name: str
    value: str


class _Provider(_Message):
    name: str
    match_images: list[str] = Field(alias="matchImages", min_length=1)
    default_cache_duration: str = Field(alias="defaultCacheDuration")
    version: Literal[_VERSIONS] = Field(alias="apiVersion")  # type: ignore[valid-type]
    args: list[str] = Field(default_factory=list)
    env: list[_Variable] = Field(default_factory=list)


class _Config(_Message):
    version: str = Field(
        alias="apiVersion", pattern=r"^kubelet\.config\.k8s\.io/v1(alpha1|beta1)?$"
    )
    kind: Literal["CredentialProviderConfig"]
    providers: list[_Provider] = Field(min_length=1)


class _Auth(_Message):
    username: str = ""
    password: str = ""


class _Response(_Message):
    version: str = Field(alias="apiVersion")
    kind: Literal["CredentialProviderResponse"]
    key_type: Literal["Image", "Registry", "Global"] = Field(alias="cacheKeyType")
    cache_duration: str | None = Field(default=None, alias="cacheDuration")
    auth: dict[str, _Auth] | None = None


@dataclass(frozen=True)
class Plugin:
    """A program, the images that it is asked for, and how long its answers are kept, in seconds,
    if they do not say it.
    """

    command: tuple[str, ...]
    patterns: tuple[str, ...]
    version: str
    lasts: float
    env: tuple[tuple[str, str], ...] = ()


def load_plugins(config: Path, folder: Path) -> list[Plugin]:
    """Returns the plugins of a CredentialProviderConfig, whose programs are in a folder.

    Raises ConfigurationError, which names the flag.
    """
    flag = f"--image-credential-provider-config {config}"
    try:
        read = _Config.model_validate(yaml.safe_load(config.read_text()))
        plugins = [_convert(provider, folder) for provider in read.providers]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise errors.ConfigurationError(f"{flag}: {where}: {first['msg']}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise errors.ConfigurationError(f"{flag}: {error}") from None
    for plugin in plugins:
        if not os.access(plugin.command[0], os.X_OK):
            raise errors.ConfigurationError(f"{flag}: there is no program {plugin.command[0]}")
    return plugins


def _convert(provider: _Provider, folder: Path) -> Plugin:
    if "/" in provider.name or provider.name in (".", ".."):
        raise ValueError(f"{provider.name!r} is not the name of a program")
    return Plugin(
        command=(str(folder / provider.name), *provider.args),
        patterns=tuple(provider.match_images),
        version=provider.version,
        lasts=parse_duration(provider.default_cache_duration).total_seconds(),
        env=tuple((variable.name, variable.value) for variable in provider.env),
    )


class CredentialPlugins:
    """Asks plugins for credentials. Thread-safe; a plugin is asked for one image at a time."""

    def __init__(self, plugins: Sequence[Plugin], clock: Clock) -> None:
        self._clock = clock
        self._plugins = [(plugin, threading.Lock()) for plugin in plugins]
        # The answers by plugin and key, and when each ends.
        self._answers: dict[tuple[Plugin, str], tuple[float, Mapping[str, _Auth]]] = {}

    def find(self, image: str) -> list[Credentials]:
        """Returns the credentials for an image, the most specific of each plugin first."""
        registry = name_registry(image)
        credentials: list[Credentials] = []
        for plugin, lock in self._plugins:
            if any(match_registry(pattern, registry) for pattern in plugin.patterns):
                with lock:
                    auth = self._ask(plugin, image, registry)
                names = [name for name in auth if match_registry(name, registry)]
                names.sort(key=len, reverse=True)
                credentials += [Credentials(auth[n].username, auth[n].password) for n in names]
        return credentials

    def _ask(self, plugin: Plugin, image: str, registry: str) -> Mapping[str, _Auth]:
        keys = {"Image": image, "Registry": registry.partition("/")[0], "Global": ""}
        now = self._clock.monotonic()
        ended = [key for key, (until, _) in [*self._answers.items()] if until <= now]
        for old in ended:
            self._answers.pop(old, None)
        for key_type, key in keys.items():
            if kept := self._answers.get((plugin, f"{key_type}:{key}")):
                return kept[1]
        try:
            response = _run(plugin, image)
            duration = response.cache_duration
            lasts = plugin.lasts if duration is None else parse_duration(duration).total_seconds()
        except (OSError, ValueError, RecursionError, subprocess.SubprocessError) as error:
            name = Path(plugin.command[0]).name
            log.warning("A credential plugin failed", plugin=name, image=image, error=_tell(error))
            return {}
        auth = response.auth or {}
        if lasts > 0:
            key = f"{response.key_type}:{keys[response.key_type]}"
            self._answers[plugin, key] = (now + lasts, auth)
        return auth


def _run(plugin: Plugin, image: str) -> _Response:
    request = {"apiVersion": plugin.version, "kind": "CredentialProviderRequest", "image": image}
    done = subprocess.run(
        plugin.command,
        input=json.dumps(request),
        env={**os.environ, **dict(plugin.env)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=True,
    )
    if len(done.stdout) > _LONGEST:
        raise ValueError("the answer is too long")
    response = _Response.model_validate_json(done.stdout)
    if response.version != plugin.version:
        raise ValueError(f"apiVersion is {response.version}, not {plugin.version}")
    return response


def _tell(error: Exception) -> str:
    """Returns what a plugin did wrong, without its answer, which may hold a password."""
    if isinstance(error, ValidationError):
        return str(error.errors(include_input=False, include_url=False)[0]["msg"])
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit code {error.returncode}: {error.stderr[-500:].strip()}"
    return str(error)
