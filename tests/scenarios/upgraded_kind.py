"""A custom kind that an operator's next release moves to another version."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority
from tests.ports import free_port
from tests.scenarios.cluster import Cluster

Json = dict[str, Any]

GROUP = "example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MIGRATIONS = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"


class UpgradedKind:
    """A kind whose objects are stored in its first version, and later in its last.

    The operator's second release converts them, on `port` of this machine and with the
    certificate that this class writes into `folder`.
    """

    def __init__(
        self, cluster: Cluster, kind: str, specs: Mapping[str, Json], folder: Path
    ) -> None:
        """`specs` are the schemas of the fields in `spec`, by version."""
        self.port = free_port()
        self._authority = Authority(folder, "webhooks")
        self._authority.server("127.0.0.1")
        self._cluster = cluster
        self._kind = kind
        self._plural = f"{kind.lower()}s"
        self._specs = specs
        self._definition = f"{DEFINITIONS}/{self._plural}.{GROUP}"

    @property
    def _old(self) -> str:
        return next(iter(self._specs))

    @property
    def _new(self) -> str:
        return list(self._specs)[-1]

    def path_of(self, version: str, name: str = "") -> str:
        """Returns the path of an object in a version, or that of all."""
        path = f"/apis/{GROUP}/{version}/namespaces/default/{self._plural}"
        return f"{path}/{name}" if name else path

    def build(self, version: str, name: str, **spec: Any) -> Json:
        """Returns an object of the kind."""
        kind = {"apiVersion": f"{GROUP}/{version}", "kind": self._kind}
        return {**kind, "metadata": {"name": name}, "spec": spec}

    def _build_version(self, name: str, *, storage: str) -> Json:
        status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec = {"type": "object", "properties": self._specs[name]}
        schema = {"type": "object", "properties": {"spec": spec, "status": status}}
        return {
            "name": name,
            "served": True,
            "storage": name == storage,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        }

    def define(self) -> None:
        """Creates the definition, with the first version alone."""
        spec = {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": self._kind, "plural": self._plural},
            "versions": [self._build_version(self._old, storage=self._old)],
        }
        body = {"metadata": {"name": f"{self._plural}.{GROUP}"}, "spec": spec}
        made = self._cluster.create(DEFINITIONS, body)
        assert made.status_code == 201, made.text
        until(lambda: self._cluster.has(self.path_of(self._old)), "the new kind")

    def convert(self) -> None:
        """Adds the last version, which is stored, and the webhook that converts."""
        config = {
            "url": f"https://127.0.0.1:{self.port}/convert",
            "caBundle": base64.b64encode(self._authority.path.read_bytes()).decode(),
        }
        webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
        self._redefine(list(self._specs), {"strategy": "Webhook", "webhook": webhook})

    def _redefine(self, versions: Sequence[str], conversion: Json) -> None:
        definition = self._cluster.get(self._definition)
        definition["spec"] |= {
            "versions": [self._build_version(name, storage=self._new) for name in versions],
            "conversion": conversion,
        }
        changed = self._cluster.client.put(self._definition, json=definition)
        assert changed.status_code == 200, changed.text

    def migrate(self) -> None:
        """Has all objects stored in the last version, and takes the others away."""
        resource = {"group": GROUP, "resource": self._plural}
        body = {"metadata": {"name": self._plural}, "spec": {"resource": resource}}
        assert self._cluster.create(MIGRATIONS, body).status_code == 201
        until(lambda: {"Succeeded", "Failed"} & set(self._states()), "the migration")
        assert self._states() == ["Succeeded"]
        definition = self._cluster.get(self._definition)
        definition["status"]["storedVersions"] = [self._new]
        stored = self._cluster.client.put(f"{self._definition}/status", json=definition)
        assert stored.status_code == 200, stored.text
        self._redefine([self._new], {"strategy": "None"})
        until(lambda: not self._cluster.has(self.path_of(self._old)), "the end of the old version")

    def _states(self) -> list[str]:
        status = self._cluster.get(f"{MIGRATIONS}/{self._plural}").get("status", {})
        return [one["type"] for one in status.get("conditions", ()) if one["status"] == "True"]
