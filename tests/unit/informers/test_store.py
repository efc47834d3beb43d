import pytest

from kcm.informers.store import Tally, ThreadSafeStore


def words(text: str) -> list[str]:
    return text.split()


def store(**items: str) -> ThreadSafeStore[str]:
    new_store: ThreadSafeStore[str] = ThreadSafeStore({"word": words})
    for key, text in items.items():
        new_store.put(key, text)
    return new_store


def test_put_returns_what_stood_there() -> None:
    new_store = store(a="red")
    assert new_store.put("a", "blue") == "red"
    assert new_store.put("b", "blue") is None
    assert new_store.get_by_key("a") == "blue"


def test_an_update_moves_the_key_to_its_new_values() -> None:
    new_store = store(a="red round", b="red")
    new_store.put("a", "blue round")
    assert new_store.by_index("word", "red") == ["red"]
    assert new_store.by_index("word", "blue") == ["blue round"]
    assert new_store.by_index("word", "round") == ["blue round"]


def test_a_value_without_keys_disappears() -> None:
    new_store = store(a="red", b="blue")
    new_store.remove("a")
    assert new_store.index_values("word") == ["blue"]
    assert new_store.remove("a") is None


def test_by_index_returns_the_objects() -> None:
    new_store = store(a="red round", b="red", c="blue")
    assert sorted(new_store.by_index("word", "red")) == ["red", "red round"]
    assert new_store.by_index("word", "green") == []


def test_an_indexer_added_late_covers_what_is_stored() -> None:
    new_store = store(a="red", b="yellow")
    new_store.add_indexers({"length": lambda text: [str(len(text))]})
    assert new_store.by_index("length", "3") == ["red"]
    assert set(new_store.indexers) == {"word", "length"}


def test_an_indexer_of_a_taken_name_is_refused_unless_it_is_the_same() -> None:
    new_store = store(a="red")
    new_store.add_indexers({"word": words})
    with pytest.raises(ValueError, match="indexer conflict: word"):
        new_store.add_indexers({"word": lambda text: [text]})
    assert new_store.by_index("word", "red") == ["red"]


def test_an_unknown_index_is_named() -> None:
    with pytest.raises(KeyError, match="index with name colour does not exist"):
        store().by_index("colour", "red")


def test_a_write_whose_index_function_raises_changes_nothing() -> None:
    def fragile(text: str) -> list[str]:
        if text == "bad":
            raise RuntimeError(text)
        return [text]

    store: ThreadSafeStore[str] = ThreadSafeStore({"word": words, "fragile": fragile})
    store.put("a", "good")
    with pytest.raises(RuntimeError):
        store.put("a", "bad")
    assert store.get_by_key("a") == "good"
    assert store.index_values("word") == ["good"]


LENGTHS: Tally[str] = Tally("word", len)


def test_a_tally_counts_the_states_under_each_value() -> None:
    new_store = store(a="red", b="red", c="red round", d="blue")
    new_store.add_tally(LENGTHS)
    assert new_store.tally(LENGTHS, "red") == {3: 2, 9: 1}
    assert new_store.tally(LENGTHS, "green") == {}


def test_a_tally_follows_every_write() -> None:
    new_store = store(a="red")
    new_store.add_tally(LENGTHS)
    new_store.put("b", "red")
    new_store.put("a", "red round")
    assert new_store.tally(LENGTHS, "red") == {3: 1, 9: 1}
    new_store.put("a", "blue")
    new_store.remove("b")
    new_store.remove("b")
    assert new_store.tally(LENGTHS, "red") == {}
    assert new_store.tally(LENGTHS, "blue") == {4: 1}


def test_a_write_whose_state_function_raises_changes_nothing() -> None:
    def state(text: str) -> int:
        if text == "red bad":
            raise ValueError("no state")
        return len(text)

    tally: Tally[str] = Tally("word", state)
    new_store = store(a="red")
    new_store.add_tally(tally)
    with pytest.raises(ValueError, match="no state"):
        new_store.put("a", "red bad")
    assert new_store.get_by_key("a") == "red"
    assert new_store.by_index("word", "bad") == []
    assert new_store.tally(tally, "red") == {3: 1}


def test_a_tally_that_was_not_added_is_an_error() -> None:
    with pytest.raises(KeyError):
        store().tally(LENGTHS, "red")
