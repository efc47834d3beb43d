from kcm.api import codec
from kcm.informers.mutation_detector import CacheMutationDetector
from kcm.testing.clock import FakeClock
from tests.unit.informers.fakes import obj


def test_the_first_changed_field_is_named() -> None:
    detector = CacheMutationDetector("pods", codec.encode, FakeClock())
    one, two = obj("a/one", colour="red"), obj("a/two", colour="red")
    detector.add_object("a/one", one)
    detector.add_object("a/two", two)
    assert detector.check() == []
    assert two.metadata.labels is not None
    two.metadata.labels["colour"] = "blue"
    assert [str(mutation) for mutation in detector.check()] == [
        "cached pods a/two was mutated: metadata.labels.colour was 'red', is 'blue'"
    ]


def test_fields_that_come_and_list_items_that_change_are_named() -> None:
    detector = CacheMutationDetector("pods", codec.encode, FakeClock())
    one, two = obj("a/one"), obj("a/two")
    two.metadata.finalizers = ["x", "y"]
    detector.add_object("a/one", one)
    detector.add_object("a/two", two)
    one.metadata.finalizers = ["z"]
    two.metadata.finalizers[1] = "changed"
    assert [(m.field, m.before, m.after) for m in detector.check()] == [
        ("metadata.finalizers", "<absent>", ["z"]),
        ("metadata.finalizers[1]", "y", "changed"),
    ]


def test_an_object_that_left_the_cache_is_watched_for_two_minutes() -> None:
    clock = FakeClock()
    detector = CacheMutationDetector("pods", codec.encode, clock)
    one = obj("a/one")
    detector.add_object("a/one", one)
    detector.remove_object("a/one")
    one.metadata.uid = "changed"
    assert len(detector.check()) == 1
    clock.step(121)
    assert detector.check() == []
