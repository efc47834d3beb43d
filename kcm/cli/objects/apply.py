"""The command `kcm apply`, which creates objects or changes them to match a file."""

from __future__ import annotations

import click

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli.connect import open_store
from kcm.cli.objects.documents import qualified_name
from kcm.cli.objects.manifests import file_options, for_each
from kcm.cli.objects.targets import namespace_option
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
