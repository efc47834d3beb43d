"""Measures how fast pods are bound whose claims get their volumes through the scheduler.

The nodes have no kubelets; the claims are there before the pods.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bench.harness import Bench, progress
from bench.nodes.scheduling import make_nodes
from bench.objects import web_pod
from bench.raw import BATCH
from bench.rest.system import PODS, RestSystem, rest_system
from bench.rest.watch import Fields, Watch
from bench.table import Row, Sample
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.local_volumes import PROVISIONER
from kcm.api.storage_classes import NO_PROVISIONER
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Store

CLASS = "bench"
# The scheduler runs, and nodes without a kubelet stay ready.
_FLAGS = (
    "--",
    "--controllers=*",
    "--node-monitor-grace-period=1h",
    "--node-startup-grace-period=1h",
)
_NOTHING: Fields = {}


def _storage_class(provisioner: str) -> StorageClass:
    return StorageClass.model_validate(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


def _claim(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim.model_validate(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )


def _volume(name: str, node: str) -> PersistentVolume:
    """Returns a local volume that one node reaches."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return PersistentVolume.model_validate(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": "/srv/volume"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }
    )


def _named(pod: Pod, name: str, *, claimed: bool) -> Pod:
    """Returns the pod under this name, with a volume of the claim of this name if `claimed`."""
    named = pod.with_metadata(name=name, generate_name=None)
    if not claimed:
        return named
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    spec = Pod.model_validate({"spec": {"volumes": [volume]}}).spec
    return named.with_spec(named.spec.replace(volumes=spec.volumes))


def _create(store: Store, objects: Sequence[KubeObject]) -> None:
    for start in range(0, len(objects), BATCH):
        items = [store.build_create(obj) for obj in objects[start : start + BATCH]]
        for result in store.write(items):
            result.get_stored()


def _prepare(bench: Bench, provisioner: str, names: Sequence[str]) -> None:
    """Creates the class, a claim under each name, and for a static class a volume for each."""
    nodes = bench.sizes.scheduled_nodes
    _create(bench.store, [_storage_class(provisioner)])
    _create(bench.store, [_claim(name) for name in names])
    if provisioner == NO_PROVISIONER:
        _create(bench.store, [_volume(f"v-{n}", f"n{n % nodes:05}") for n in range(len(names))])


def _bind(system: RestSystem, pods: Watch, names: Sequence[str], *, claimed: bool) -> float:
    """Creates a pod under each name; returns the seconds until all are bound to a node."""
    template = web_pod("load")
    requests = [system.create(PODS, _named(template, name, claimed=claimed)) for name in names]
    waiting = list(names)

    def are_bound(watch: Watch) -> bool:
        while waiting and watch.objects.get(waiting[-1], _NOTHING).get("spec", {}).get("nodeName"):
            waiting.pop()
        return not waiting

    started = time.monotonic()
    system.client.ask_all(requests)
    return pods.wait(are_bound, f"the binding of {len(names)} pods") - started


def _measure(bench: Bench, name: str, what: str, provisioner: str) -> Iterator[Row]:
    nodes, count = bench.sizes.scheduled_nodes, bench.sizes.scheduled_pods
    progress(f"rest: {count} pods with {what}")
    ours, plain = [], []
    with rest_system(bench, *_FLAGS) as system, Watch(system.servers.api, PODS) as pods:
        make_nodes(bench.store, nodes)
        numbers = range(bench.sizes.rest_rounds)
        names = [[f"claimed-{round_}-{n}" for n in range(count)] for round_ in numbers]
        _prepare(bench, provisioner, [one for each in names for one in each])
        for number in numbers:
            system.settle()
            ours.append(_bind(system, pods, names[number], claimed=True))
            system.settle()
            others = [f"plain-{number}-{n}" for n in range(count)]
            plain.append(_bind(system, pods, others, claimed=False))
    baseline = Sample.of(plain)
    yield Row(
        name=f"rest.claims.{name}",
        what=f"{count:,} pods with {what}, until all are bound to {nodes:,} nodes",
        unit="s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="s, the same pods without claims",
        bound=3 * baseline.median,
        target="3 x the same without claims",
    )


def made(bench: Bench) -> Iterator[Row]:
    """Measures pods whose volumes kcm makes once the scheduler has chosen the node."""
    return _measure(bench, "made", "a claim each whose volume is made", PROVISIONER)


def local(bench: Bench) -> Iterator[Row]:
    """Measures pods that choose among volumes of single nodes."""
    return _measure(bench, "local", "a claim each for a local volume", NO_PROVISIONER)
