"""Images: when they are pulled, and the back-off after a failed pull."""

from __future__ import annotations

import base64
import json

import pytest

from kcm import errors
from kcm.api.core_v1 import Container, Pod, Secret
from kcm.kubelet.images.plugins import CredentialPlugins
from kcm.kubelet.images.store import Credentials, Image
from kcm.kubelet.kuberuntime.images import ImageManager, NodeImages, StoredImages
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.reconcile.plan import Event
from kcm.testing.clock import FakeClock
from tests.lookups import FakeLookups
from tests.unit.kubelet.views import container, pod


class Images:
    """An image service whose images are present or not, and can be pulled or not."""

    def __init__(self, present: bool, pullable: bool) -> None:
        self.present = present
        self.pullable = pullable

    def has_image(self, asked: Pod, container: Container) -> bool:
        return self.present

    def pull_image(self, asked: Pod, container: Container) -> int:
        if not self.pullable:
            raise errors.ImagePullFailed("not found")
        return 1234


class RecordedEvents:
    """Keeps the Events that are recorded."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append(f"{event.reason}: {event.message}")


class World:
    def __init__(self, *, present: bool = False, pullable: bool = True) -> None:
        self.clock = FakeClock()
        self.recorded = RecordedEvents()
        service = Images(present, pullable)
        self._manager = ImageManager(service, KubeletEventRecorder(self.recorded, "n1"), self.clock)

    def ensure(self, policy: str | None = None) -> tuple[str, str] | None:
        """Returns the reason and message why the image is missing.

        Keeps the Events of this call only.
        """
        self.recorded.events.clear()
        result = self._manager.ensure_image(
            pod(), container("main").replace(image_pull_policy=policy)
        )
        return (result.reason, result.message) if result else None


def test_an_image_that_is_there_is_not_pulled() -> None:
    world = World(present=True)
    assert world.ensure("IfNotPresent") is None
    assert world.recorded.events == ['Pulled: Container image "x" already present on machine']


def test_an_image_is_pulled_where_it_is_missing_or_always() -> None:
    for world, policy in ((World(present=True), "Always"), (World(), "IfNotPresent")):
        assert world.ensure(policy) is None
        assert world.recorded.events == [
            'Pulling: Pulling image "x"',
            'Pulled: Successfully pulled image "x" in 0s (0s including waiting). '
            "Image size: 1234 bytes.",
        ]


def test_an_image_that_must_not_be_pulled_is_missing() -> None:
    world = World()
    text = 'Container image "x" is not present with pull policy of Never'
    assert world.ensure("Never") == ("ErrImageNeverPull", text)


def test_a_failed_pull_waits_twice_as_long_each_time() -> None:
    world = World(pullable=False)
    assert world.ensure() == ("ErrImagePull", "not found")
    assert world.recorded.events == [
        'Pulling: Pulling image "x"',
        'Failed: Failed to pull image "x": not found',
        "Failed: Error: ErrImagePull",
    ]
    world.clock.step(9)
    text = 'Back-off pulling image "x": ErrImagePull: not found'
    assert world.ensure() == ("ImagePullBackOff", text)
    assert world.recorded.events == [
        'BackOff: Back-off pulling image "x"',
        "Failed: Error: ImagePullBackOff",
    ]
    world.clock.step(1)
    assert world.ensure() == ("ErrImagePull", "not found")
    world.clock.step(19)
    assert world.ensure() == ("ImagePullBackOff", text)
    world.clock.step(1)
    assert world.ensure() == ("ErrImagePull", "not found")


def test_the_images_of_a_containers_volumes_are_pulled_by_their_own_policies() -> None:
    recorded = RecordedEvents()
    recorder = KubeletEventRecorder(recorded, "n1")
    images = NodeImages(ImageManager(Images(True, False), recorder, FakeClock()))
    raw = {
        "containers": [
            {"name": "main", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
        ],
        "volumes": [
            {"name": "other", "image": {"reference": "o", "pullPolicy": "Always"}},
            {"name": "data", "image": {"reference": "d", "pullPolicy": "IfNotPresent"}},
        ],
    }
    box = Pod.model_validate({"metadata": {"name": "box", "uid": "u"}, "spec": raw})
    assert images.ensure(box, box.spec.containers[0]) is None
    assert [text.split('"')[1] for text in recorded.events] == ["x", "d"]
    raw["volumes"][1]["image"]["pullPolicy"] = "Always"  # type: ignore[index]
    box = Pod.model_validate({"metadata": {"name": "box", "uid": "u"}, "spec": raw})
    result = images.ensure(box, box.spec.containers[0])
    assert result is not None
    assert (result.container, result.reason) == ("main", "ErrImagePull")


class Registry:
    """Implements images.store.ImageStore: images that are pulled, and who may."""

    def __init__(self, *, allowed: str = "", present: bool = False) -> None:
        self.allowed = allowed
        self.present = present
        self.asked: list[str] = []

    def find(self, name: str) -> Image | None:
        return Image("id", size=7) if self.present else None

    def pull(self, name: str, credentials: Credentials | None) -> Image:
        who = credentials.username if credentials else ""
        self.asked.append(who)
        if who != self.allowed:
            raise errors.ImagePullFailed(f"not for {who or 'nobody'}")
        return Image("id", size=7)


def pull_by(registry: Registry, *names: str, plugins: CredentialPlugins | None = None) -> int:
    """Pulls an image for a pod whose Secret has these users, the most specific first."""
    places = ("hub.io/team", "hub.io/tea", "hub.io/te")
    auths = {place: {"username": user} for place, user in zip(places, names, strict=False)}
    data = {".dockerconfigjson": base64.b64encode(json.dumps({"auths": auths}).encode()).decode()}
    secret = Secret.model_validate({"type": "kubernetes.io/dockerconfigjson", "data": data})
    pulled = Pod.model_validate(
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "containers": [{"name": "main", "image": "hub.io/team/app:1"}],
                "imagePullSecrets": [{"name": "s"}],
            },
        }
    )
    service = StoredImages(
        registry,  # type: ignore[arg-type] # no more of a store is needed
        FakeLookups(secrets={("shop", "s"): secret}),
        at_once=1,
        plugins=plugins,
    )
    return service.pull_image(pulled, pulled.spec.containers[0])


def test_an_image_is_pulled_by_whoever_of_the_pods_secrets_may() -> None:
    registry = Registry(allowed="b")
    assert pull_by(registry, "a", "b", "c") == 7
    assert registry.asked == ["a", "b"]
    assert pull_by(Registry(), *()) == 7


def test_an_image_that_nobody_may_pull_says_why_the_last_one_may_not() -> None:
    with pytest.raises(errors.ImagePullFailed, match="not for b"):
        pull_by(Registry(allowed="x"), "a", "b")


class Plugins(CredentialPlugins):
    """Plugins that know one user."""

    def __init__(self) -> None: ...

    def find(self, image: str) -> list[Credentials]:
        return [Credentials(image)]


def test_the_nodes_plugins_are_asked_after_the_pods_secrets() -> None:
    registry = Registry(allowed="hub.io/team/app:1")
    assert pull_by(registry, "a", plugins=Plugins()) == 7
    assert registry.asked == ["a", "hub.io/team/app:1"]
