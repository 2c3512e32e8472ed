"""The unpickler for CIFAR's files: arrays and plain values come out, everything else is refused before it runs."""

import codecs
import os
import pickle

import numpy as np
import pytest

from labelkin._checks import InputError
from labelkin.data._readers.safe_pickle import load

ARRAYS = [
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3)),
    np.arange(3, dtype=">f8"),
    np.array([True, False]),
    np.array(["cat", "dög"]),
    np.array(b"abc"),
    np.zeros((0, 3072), dtype=np.uint8),
]


class Runs:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_plain_values_come_out_as_they_went_in(protocol):
    plain = {"labels": [3, 1], b"name": (b"x", None, True, -5, 2.5, 10**30), "deep": [[{"k": "v"}]]}
    content = pickle.dumps({"plain": plain, "arrays": ARRAYS, "same": ARRAYS[0]}, protocol=protocol)
    found = load(content, source="here")
    assert found["plain"] == plain
    for array, result in zip([*ARRAYS, ARRAYS[0]], [*found["arrays"], found["same"]], strict=True):
        np.testing.assert_array_equal(result, array)
        assert result.dtype == array.dtype


def test_python_2_wrote_arrays_and_text_like_this():
    # {'data': array([[1, 2]], dtype=uint8), 'labels': [7]}, opcode by opcode as the official files have it
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87"
        b"Rq\x05(K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89U\x02\x01\x02tbU\x06labelsq\x08]q\tK\x07au."
    )
    found = load(content, source="here")
    assert found[b"labels"] == [7]
    np.testing.assert_array_equal(found[b"data"], np.array([[1, 2]], dtype=np.uint8))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.system, os.mkdir, eval, exec, __import__], ids=lambda f: f.__name__)
def test_a_hostile_pickle_is_refused_and_nothing_runs(tmp_path, protocol, function):
    marker = tmp_path / "ran"
    argument = {os.system: f"touch {marker}", os.mkdir: str(marker), __import__: "antigravity"}.get(
        function, f"__import__('os').mkdir({str(marker)!r})"
    )
    content = pickle.dumps({b"data": Runs(function, argument), b"labels": [0]}, protocol=protocol)
    with pytest.raises(
        InputError, match=r"evil: expected only numpy arrays and plain values, got .+, which was not run"
    ):
        load(content, source="evil")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([Runs(os.getcwd)], dtype=object), "expected only numpy arrays and plain values, got"),
        (np.array([[1], "a"], dtype=object), "expected an array of numbers or text"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "expected an array of numbers or text"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "expected an array of numbers or text"),
        (Runs(codecs.encode, "abc", "rot13"), "expected the encoding 'latin1'"),
        (np.ndarray, "expected a value, got a class"),
        (np.float64(1.0), "expected only numpy arrays and plain values, got"),
        ({1, 2}, "asks for|not a readable pickle|plain"),
    ],
    ids=["object", "mixed", "records", "dates", "codec", "class", "scalar", "set"],
)
def test_what_is_neither_plain_nor_an_array_of_plain_values_is_refused(value, message):
    with pytest.raises(InputError, match=message):
        load(pickle.dumps([value], protocol=2), source="here")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02",
        b"no pickle at all",
        pickle.dumps(list(range(100)))[:-20],
        b"\x80\x02cnumpy\ndtype\nU\x01x}b.",  # state set on the stand-in's own class
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.",  # an array without its state
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R(K\x01K\x09\x85N\x89U\x00tb.",  # without its type
        b"\x80\x02\x82\x01.",  # an extension code
        b"\x80\x02U\x01xQ.",  # a persistent id
    ],
)
def test_broken_pickles_give_one_sentence(content):
    with pytest.raises(InputError, match=r"^here: .+") as caught:
        load(content, source="here")
    assert "\n" not in str(caught.value)


def test_shared_lists_do_not_blow_up():
    value: list[object] = []
    for _ in range(100):  # 2**100 leaves if each were visited
        value = [value, value]
    found = load(pickle.dumps(value), source="here")
    assert found[0] is found[1]
