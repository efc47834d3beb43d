"""Credentials from plugins: what they are asked, how long answers are kept, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm import errors
from kcm.kubelet.images.plugins import CredentialPlugins, load_plugins
from kcm.kubelet.images.store import Credentials
from kcm.testing.clock import FakeClock

V1 = "credentialprovider.kubelet.k8s.io/v1"
CLOUD = {"*.cloud.io": {"username": "me", "password": "word"}}


def provider(**more: Any) -> dict[str, Any]:
    return {
        "name": "login", "matchImages": ["*.cloud.io"], "defaultCacheDuration": "10m",
        "apiVersion": V1, **more,
    }  # fmt: skip


def write_config(folder: Path, *providers: Any, **more: Any) -> Path:
    config = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
              "providers": list(providers), **more}  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder / "config.yaml"


def answer(**more: Any) -> str:
    response = {"apiVersion": V1, "kind": "CredentialProviderResponse", "auth": CLOUD,
                "cacheKeyType": "Registry", **more}  # fmt: skip
    return json.dumps(response)


class World:
    """A plugin that notes what it is asked, and answers with the content of a file."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.say(answer())
        (folder / "login").write_text(
            f"#!/bin/sh\ncat >> {folder}/asked\necho $HOW >> {folder}/asked\n"
            f"cat {folder}/answer\nexit $1\n"
        )
        (folder / "login").chmod(0o755)
        config = write_config(folder, provider(**{"args": ["0"], **more}))
        self.plugins = CredentialPlugins(load_plugins(config, folder), self.clock)

    def say(self, text: str) -> None:
        (self.folder / "answer").write_text(text)

    def asked(self) -> int:
        return (self.folder / "asked").read_text().count("CredentialProviderRequest")


def test_a_plugin_is_asked_for_images_that_match(tmp_path: Path) -> None:
    world = World(tmp_path, env=[{"name": "HOW", "value": "politely"}])
    assert world.plugins.find("a.cloud.io/app:1") == [Credentials("me", "word")]
    assert world.plugins.find("other.io/app") == world.plugins.find("busybox") == []
    request, how = (tmp_path / "asked").read_text().split("}")
    assert json.loads(request + "}") == {
        "apiVersion": V1, "kind": "CredentialProviderRequest", "image": "a.cloud.io/app:1",
    }  # fmt: skip
    assert how.strip() == "politely"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ({"cacheKeyType": "Image"}, 3),
        ({"cacheKeyType": "Registry"}, 2),
        ({"cacheKeyType": "Global"}, 1),
        ({"cacheKeyType": "Global", "cacheDuration": "0s"}, 4),
    ],
)
def test_an_answer_is_kept_for_what_it_says(
    tmp_path: Path, said: dict[str, str], asked: int
) -> None:
    world = World(tmp_path)
    world.say(answer(**said))
    for image in ("a.cloud.io/app", "a.cloud.io/app", "a.cloud.io/db", "b.cloud.io/app"):
        assert world.plugins.find(image) == [Credentials("me", "word")]
    assert world.asked() == asked


@pytest.mark.parametrize(("said", "seconds"), [({}, 600), ({"cacheDuration": "5s"}, 5)])
def test_an_answer_is_kept_as_long_as_it_says(
    tmp_path: Path, said: dict[str, str], seconds: int
) -> None:
    world = World(tmp_path)
    world.say(answer(**said))
    for step, asked in ((seconds - 1, 1), (1, 2)):
        world.plugins.find("a.cloud.io/app")
        world.clock.step(step)
        world.plugins.find("a.cloud.io/app")
        assert world.asked() == asked


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("", "0"),
        ("[" * 100_000, "0"),
        (answer(), "1"),
        (answer(apiVersion="credentialprovider.kubelet.k8s.io/v1beta1"), "0"),
        (answer(cacheKeyType="Moon"), "0"),
        (answer(cacheDuration="soon"), "0"),
        (answer(auth={"*.cloud.io": {"token": "secret"}}), "0"),
        (answer(auth={"x" * 2**20: {}}), "0"),
    ],
)
def test_a_plugin_that_fails_gives_nothing_and_is_asked_again(
    tmp_path: Path, said: str, code: str
) -> None:
    world = World(tmp_path, args=[code])
    world.say(said)
    assert world.plugins.find("a.cloud.io/app") == world.plugins.find("a.cloud.io/app") == []
    assert world.asked() == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../login"}, "is not the name of a program"),
        ({"name": "missing"}, "there is no program"),
        ({"matchImages": []}, "providers.0.matchImages: "),
        ({"apiVersion": "v1"}, "providers.0.apiVersion: "),
        ({"defaultCacheDuration": "soon"}, "soon"),
        ({"tokenAttributes": {}}, "providers.0.tokenAttributes: "),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    World(tmp_path)
    config = write_config(tmp_path, provider(**change))
    with pytest.raises(errors.ConfigurationError) as caught:
        load_plugins(config, tmp_path)
    assert f"--image-credential-provider-config {config}: " in caught.value.message
    assert words in caught.value.message
