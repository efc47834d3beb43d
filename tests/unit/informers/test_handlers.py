from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.delta_fifo import DeletedFinalStateUnknown
from kcm.informers.handlers import FilteringResourceEventHandler, ResourceEventHandlerFuncs
from tests.unit.informers.fakes import Recorder, obj

RED = obj("a/b", 1, colour="red")
BLUE = obj("a/b", 2, colour="blue")


def is_red(o: KubeObject) -> bool:
    return o.labels.get("colour") == "red"


def test_functions_left_out_are_not_called() -> None:
    seen: list[str] = []
    full: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs(
        add=lambda o: seen.append(f"add {o.key}"),
        update=lambda old, new: seen.append(f"update {new.key}"),
        delete=lambda o: seen.append(f"delete {o.key}"),
    )
    empty: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs()
    for handler in (full, empty):
        handler.on_add(RED, False)
        handler.on_update(RED, BLUE)
        handler.on_delete(BLUE)
    assert seen == ["add a/b", "update a/b", "delete a/b"]


def test_entering_the_filter_is_an_add_and_leaving_it_a_delete() -> None:
    recorder = Recorder()
    handler = FilteringResourceEventHandler(is_red, recorder)
    handler.on_add(BLUE, False)
    handler.on_update(BLUE, BLUE)
    handler.on_update(BLUE, RED)
    handler.on_update(RED, RED)
    handler.on_update(RED, BLUE)
    handler.on_delete(BLUE)
    handler.on_add(RED, True)
    handler.on_delete(DeletedFinalStateUnknown("a/b", BLUE))
    handler.on_delete(DeletedFinalStateUnknown("a/b", None))
    assert recorder.events == [
        "add a/b",
        "update a/b 1->1",
        "delete a/b",
        "add a/b initially",
        "delete a/b unknown",
    ]
