"""kubectl with a custom kind that a webhook converts."""

from __future__ import annotations

import json
import subprocess

from kcm.testing.waiting import until
from tests.integration.apiserver.conversions import Gateways, gateways, server
from tests.integration.apiserver.kubectl import Kubectl

__all__ = ["gateways", "server"]


def test_objects_are_applied_edited_and_watched_in_either_version(
    gateways: Gateways, kubectl: Kubectl
) -> None:
    new, old = f"gateways.v1.{gateways.group}", f"gateways.v1beta1.{gateways.group}"
    watch = subprocess.Popen(
        kubectl.command("get", old, "--watch", "-o", "jsonpath={.spec}{'\\n'}"),
        env=kubectl.environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    cache = gateways.api.app.cacher.cache(gateways.resource)
    until(lambda: cache.watcher_count == 1, "the watch")
    kubectl("apply", "-f", "-", stdin=gateways.gateway("a", "v1"))
    changed = gateways.gateway("a", "v1beta1")
    changed["spec"]["hostPort"] = "market:81"
    assert "configured" in kubectl("apply", "-f", "-", stdin=changed)
    assert json.loads(kubectl("get", new, "a", "-o", "json"))["spec"] == {
        "host": "market", "port": 81,
    }  # fmt: skip
    kubectl("patch", new, "a", "--type=merge", "--patch", '{"spec": {"port": 82}}')
    assert "market:82" in kubectl("get", old)
    assert "market" in kubectl("get", new)
    assert watch.stdout is not None
    seen = [json.loads(watch.stdout.readline()) for _ in range(3)]
    watch.kill()
    watch.wait()
    watch.stdout.close()
    assert [spec["hostPort"] for spec in seen] == ["shop:80", "market:81", "market:82"]
    kubectl("delete", new, "a")
