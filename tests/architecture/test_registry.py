"""Every controller is registered, named as upstream names it, tested, and reads what exists."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm import controllers, registry
from kcm.api.scheme import Scheme
from kcm.controllers.scheduler import SchedulerController
from kcm.options.names import BY_NAME
from kcm.reconcile.caches import list_declared_models
from kcm.reconcile.contract import Controller, NoOptions, Options, shared_with

ROOT = Path(__file__).parents[2]
TYPES = registry.controller_types()
FOLDER = Path(controllers.__path__[0])
GROUPS = ("bootstrap", "certificates", "cloud", "endpoints", "serviceaccounts", "volumes")
SHARED = {"replicationcontroller": {"replicaset"}}  # one controller over two kinds
# The contents of files that options name, which are read once.
FILES = {
    "clustertrustbundlepublisher": {"_certificates"},
    "rootcacertpublisher": {"_data"},
    "serviceaccounttoken": {"_pem", "_root_ca"},
}
OF_THE_API_SERVER = {"service-ip-repair-controller"}  # a loop of kube-apiserver upstream


def list_modules() -> Iterator[str]:
    """Yields the names of the controllers' modules below kcm.controllers."""
    for folder, prefix in ((FOLDER, ""), *((FOLDER / group, f"{group}.") for group in GROUPS)):
        for module in pkgutil.iter_modules([str(folder)], prefix):
            if module.name not in GROUPS:
                yield module.name


MODULES = sorted(list_modules())


def module_of(line: str) -> str:
    return line.partition(":")[0].removeprefix(".")


def short(module: str) -> str:
    return module.rpartition(".")[2]


def test_the_lines_of_the_registry_are_sorted_and_unique() -> None:
    in_order = sorted(set(registry.CONTROLLERS), key=lambda line: short(module_of(line)))
    assert list(registry.CONTROLLERS) == in_order


@pytest.mark.parametrize("line", registry.CONTROLLERS)
def test_a_line_of_the_registry_names_a_controller(line: str) -> None:
    module, _, name = line.partition(":")
    imported = importlib.import_module(module, "kcm.controllers")
    assert issubclass(getattr(imported, name), Controller)


def test_modules_and_lines_of_the_registry_pair_up() -> None:
    assert sorted(module_of(line) for line in registry.CONTROLLERS) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_controller_has_a_test_module(module: str) -> None:
    *group, name = module.split(".")
    folder = ROOT.joinpath("tests", "unit", "controllers", *group)
    assert (folder / f"test_{name}.py").is_file() or (folder / name).is_dir()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
class TestEachController:
    def test_is_named_as_upstream_names_it(self, kind: type[Controller]) -> None:
        # Letters only: short names are parts of Redis keys and task names.
        if kind is SchedulerController:  # named as its pods name it
            assert kind.name == "default-scheduler"
            return
        if kind.name in OF_THE_API_SERVER:
            return
        alias = BY_NAME[kind.name].alias.removesuffix("-controller")
        assert alias.replace("-", "") in ("", kind.short_name)

    def test_has_names_that_fit_into_keys_queues_and_tasks(self, kind: type[Controller]) -> None:
        assert re.fullmatch(r"[a-z][a-z-]*[a-z]", kind.name)
        assert re.fullmatch(r"[a-z]+", kind.short_name)
        assert re.fullmatch(r"[a-z]+", kind.group)

    def test_lives_in_the_module_of_its_short_name(self, kind: type[Controller]) -> None:
        assert kind.short_name in kind.__module__.split(".")[2:4]

    def test_reads_and_watches_only_kinds_of_the_scheme(self, kind: type[Controller]) -> None:
        models = list_declared_models(kind(), Scheme())
        assert models
        assert {model.resource.model for model in models} == set(models)

    def test_does_something(self, kind: type[Controller]) -> None:
        controller = kind()
        assert controller.watches() or controller.ticks()
        if controller.watches():
            assert kind.reconcile is not Controller.reconcile

    def test_says_where_its_behaviour_comes_from(self, kind: type[Controller]) -> None:
        text = inspect.getdoc(inspect.getmodule(kind)) or ""
        assert re.search(r"Source:\s+(pkg|staging)/.*Kubernetes 1\.3[36]", text, re.DOTALL)

    def test_explains_each_option_and_has_a_default_for_it(self, kind: type[Controller]) -> None:
        package = kind.__module__.rpartition(".")[0]
        own = (kind.__module__, f"{package}.options")
        assert kind.options_type is NoOptions or kind.options_type.__module__ in own
        for name, field in kind.options_type.model_fields.items():
            assert field.description or shared_with(field), name
            assert not field.is_required(), name

    def test_keeps_nothing_between_calls(self, kind: type[Controller]) -> None:
        # The scheduler's copies of the caches may be lost: decisions do not depend on them.
        kept = {"_schedulers"} if kind is SchedulerController else FILES.get(kind.short_name, set())
        assert vars(kind()).keys() == {"options"} | kept

    def test_has_ticks_of_different_names(self, kind: type[Controller]) -> None:
        names = [tick.name for tick in kind().ticks()]
        assert len(names) == len(set(names))
        assert all(tick.every > 0 for tick in kind().ticks())


def test_names_and_short_names_are_unique() -> None:
    names = [name for kind in TYPES for name in {kind.name, kind.short_name}]
    assert len(names) == len(set(names))


def test_no_two_controllers_have_an_option_of_the_same_name() -> None:
    fields = [item for kind in TYPES for item in kind.options_type.model_fields.items()]
    flags = [name for name, field in fields if not shared_with(field)]
    assert len(flags) == len(set(flags))
    assert not set(flags) & Options.model_fields.keys()
    assert {name for name, field in fields if shared_with(field)} <= set(flags)


def test_controllers_do_not_import_each_other() -> None:
    for module in MODULES:
        path = FOLDER.joinpath(*module.split("."))
        files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
        for file in files:
            imported = set(re.findall(r"kcm\.controllers\.([\w.]+)", file.read_text("utf-8")))
            own = {module} | SHARED.get(module, set())
            assert {name for name in imported if not is_of(name, own)} == set(), file


def is_of(name: str, modules: set[str]) -> bool:
    """Reports whether `name` is one of the modules, or in one."""
    return any(f"{name}.".startswith(f"{module}.") for module in modules)
