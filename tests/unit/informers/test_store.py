import pytest

from kcm.informers.store import ThreadSafeStore


def words(text: str) -> list[str]:
    return text.split()


def store(**items: str) -> ThreadSafeStore[str]:
    made: ThreadSafeStore[str] = ThreadSafeStore({"word": words})
    for key, text in items.items():
        made.put(key, text)
    return made


def test_put_returns_what_stood_there() -> None:
    made = store(a="red")
    assert made.put("a", "blue") == "red"
    assert made.put("b", "blue") is None
    assert made.get_by_key("a") == "blue"


def test_an_update_moves_the_key_to_its_new_values() -> None:
    made = store(a="red round", b="red")
    made.put("a", "blue round")
    assert made.by_index("word", "red") == ["red"]
    assert made.by_index("word", "blue") == ["blue round"]
    assert made.by_index("word", "round") == ["blue round"]


def test_a_value_without_keys_disappears() -> None:
    made = store(a="red", b="blue")
    made.remove("a")
    assert made.index_values("word") == ["blue"]
    assert made.remove("a") is None


def test_by_index_returns_the_objects() -> None:
    made = store(a="red round", b="red", c="blue")
    assert sorted(made.by_index("word", "red")) == ["red", "red round"]
    assert made.by_index("word", "green") == []


def test_an_indexer_added_late_covers_what_is_stored() -> None:
    made = store(a="red", b="yellow")
    made.add_indexers({"length": lambda text: [str(len(text))]})
    assert made.by_index("length", "3") == ["red"]
    assert set(made.indexers) == {"word", "length"}


def test_an_indexer_of_a_taken_name_is_refused_unless_it_is_the_same() -> None:
    made = store(a="red")
    made.add_indexers({"word": words})
    with pytest.raises(ValueError, match="indexer conflict: word"):
        made.add_indexers({"word": lambda text: [text]})
    assert made.by_index("word", "red") == ["red"]


def test_an_unknown_index_is_named() -> None:
    with pytest.raises(KeyError, match="index with name colour does not exist"):
        store().by_index("colour", "red")


def test_a_write_whose_index_function_raises_changes_nothing() -> None:
    def fragile(text: str) -> list[str]:
        if text == "bad":
            raise RuntimeError(text)
        return [text]

    made: ThreadSafeStore[str] = ThreadSafeStore({"word": words, "fragile": fragile})
    made.put("a", "good")
    with pytest.raises(RuntimeError):
        made.put("a", "bad")
    assert made.get_by_key("a") == "good"
    assert made.index_values("word") == ["good"]
