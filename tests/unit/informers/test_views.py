from kcm.api import codec
from kcm.informers.views import full_view, metadata_view
from tests.unit.informers.fakes import PODS, pod

RAW = codec.encode(pod("a/b", 3, colour="red"))[:-1] + b',"spec":{"nodeName":"n1"}}'


def test_a_full_view_keeps_the_object() -> None:
    view = full_view(PODS)
    decoded = view.decode(RAW)
    assert codec.to_dict(decoded)["spec"]["nodeName"] == "n1"
    assert view.convert(decoded) is decoded


def test_a_metadata_view_keeps_kind_and_metadata_only() -> None:
    view = metadata_view(PODS)
    decoded = view.decode(RAW)
    converted = view.convert(codec.decode(RAW, PODS))
    for partial_object_metadata in (decoded, converted):
        assert set(codec.to_dict(partial_object_metadata)) == {"apiVersion", "kind", "metadata"}
        assert (
            partial_object_metadata.kind,
            partial_object_metadata.key,
            partial_object_metadata.labels["colour"],
        ) == ("Pod", "a/b", "red")
