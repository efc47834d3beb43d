"""The commands `kcm apply`, `kcm create` and `kcm scale`."""

from __future__ import annotations

import click

from kcm import errors
from kcm.api import codec
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli.connect import open_store
from kcm.cli.objects.documents import qualified_name
from kcm.cli.objects.manifests import file_options, for_each
from kcm.cli.objects.targets import namespace_option, parse_targets, selection
from kcm.store import Store
from kcm.store.apply import apply as apply_object


@click.command()
@file_options
@namespace_option
def apply(files: tuple[str, ...], recursive: bool, namespace: str) -> None:
    """Create objects, or change them to match a file.

    Fields that an earlier apply set and the file no longer has are removed;
    fields that others set (such as an autoscaler's replicas) stay. Each object
    succeeds or fails by itself; the exit code is 1 if any failed.

    \b
    Examples:
      kcm apply -f examples/01-replicaset/web.yaml
      kcm apply -f manifests/ -R -n shop
      cat web.yaml | kcm apply -f -
    """
    with open_store() as store:

        def act(obj: KubeObject) -> str:
            outcome, stored = apply_object(store, obj)
            return f"{qualified_name(stored)} {outcome}"

        for_each(files, recursive, namespace, "applying", act, kinds=store.scheme)


@click.command()
@file_options
@namespace_option
def create(files: tuple[str, ...], recursive: bool, namespace: str) -> None:
    """Create objects from a file; one that exists is an error.

    \b
    Example:
      kcm create -f pod.yaml
    """
    with open_store() as store:

        def act(obj: KubeObject) -> str:
            return f"{qualified_name(store.create(obj))} created"

        for_each(files, recursive, namespace, "creating", act, kinds=store.scheme)


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME...")
@click.option("--replicas", type=click.IntRange(min=0), required=True, help="How many pods.")
@click.option(
    "--current-replicas",
    type=click.IntRange(min=0),
    default=None,
    help="Scale only if the present number is this.",
)
@namespace_option
def scale(
    what: tuple[str, ...], replicas: int, current_replicas: int | None, namespace: str
) -> None:
    """Set how many pods a ReplicaSet keeps.

    \b
    Examples:
      kcm scale rs web --replicas 5
      kcm scale rs/web --current-replicas 5 --replicas 3
    """
    chosen = selection(namespace)
    with open_store() as store:
        for target in parse_targets(what, store.scheme):
            if not target.names:
                raise click.UsageError("name what to scale, for example: rs web")
            for name in target.names:
                key = chosen.key(target.resource, name)
                click.echo(
                    _scale(store, store.get(target.resource, key), replicas, current_replicas)
                )


def _scale(store: Store, obj: KubeObject, replicas: int, expected: int | None) -> str:
    spec = codec.to_dict(obj).get("spec") or {}
    resource = obj.resource
    if "replicas" not in spec:
        raise errors.BadRequest(f"{resource.name} cannot be scaled: they have no spec.replicas")
    if expected is not None and spec["replicas"] != expected:
        raise errors.Conflict(
            f"Expected replicas to be {expected}, was {spec['replicas']}: "
            f"{qualified_name(obj)} was not scaled"
        )
    patch: dict[str, object] = {"spec": {"replicas": replicas}}
    if expected is not None:
        patch["metadata"] = {"resourceVersion": obj.metadata.resource_version}
    return f"{qualified_name(store.patch(resource, obj.key, patch))} scaled"
