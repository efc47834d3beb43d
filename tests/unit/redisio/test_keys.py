"""Tests that the scripts build only keys that `Keys` names."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files

from kcm.redisio.keys import Keys

SCRIPTED = re.compile(r"P \.\. ':([a-z_]+)")


def families() -> set[str]:
    """Returns the first word after the prefix for every key that `Keys` builds."""
    keys, names = Keys("p"), set()
    for name, method in inspect.getmembers(keys, inspect.ismethod):
        if not name.startswith("_"):
            words = ["x"] * len(inspect.signature(method).parameters)
            names.add(method(*words).split(":")[1])
    return names


def test_scripts_build_no_key_that_has_no_name_here() -> None:
    scripts = files("kcm.redisio").joinpath("lua").iterdir()
    built = {word for script in scripts for word in SCRIPTED.findall(script.read_text())}
    assert len(built) > 10
    assert built <= families()


def test_every_key_begins_with_the_prefix() -> None:
    assert Keys("other").object("pods", "ns/name") == "other:object:pods:ns/name"
    assert Keys().resource_version() == "kcm:rv"
