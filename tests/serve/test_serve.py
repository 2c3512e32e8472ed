"""A served run: answers of `predict` over real connections, and what is refused."""

import io
import json
import re
import signal
from collections.abc import Iterator
from math import nextafter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, Taxonomy
from labelkin.data import read_unlabeled
from labelkin.runs import load_run
from labelkin.serve import _inputs as inputs
from labelkin.serve import create_app
from labelkin.serve._answer import Answering
from labelkin.serve._server import listening
from support.commands import FOUND, PIXELS, refused, start
from support.later import later_or_skip

later_or_skip("fastapi")
later_or_skip("uvicorn")

TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
NAMES = [f"p{at}" for at in range(64)]
OPTIONS: dict[str, Any] = {"epochs": 2, "calibration": 0.1}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run, of photos."""
    folder = tmp_path_factory.mktemp("serve")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    labelkin.train("digits", "one-hot", out=folder / "photos", taxonomy=folder / "tree.json", **OPTIONS)
    return folder


@pytest.fixture(scope="module")
def home(photos: Path) -> Path:
    """The same folder with runs of a table, of texts, and of an objective without probabilities."""
    folder = photos
    rows = [",".join([*NAMES, "label"])]
    rows += [",".join([*map(str, row), str(y)]) for row, y in zip(FOUND.data[:500], FOUND.target[:500], strict=True)]
    (folder / "table.csv").write_text("\n".join(rows))
    labelkin.train(folder / "table.csv", "one-hot", out=folder / "table", taxonomy=folder / "tree.json", **OPTIONS)
    words = {"cat": "purr meow milk", "dog": "bark bone walk", "car": "wheel road fuel"}
    texts = ["text,label", *(f"{text} {k},{name}" for k in range(20) for name, text in words.items())]
    (folder / "texts.csv").write_text("\n".join(texts))
    labelkin.train(folder / "texts.csv", "one-hot", out=folder / "texts", data_options={"text": "text"}, epochs=20)
    labelkin.train("digits", "static-labels", out=folder / "plain", epochs=1, calibration=0)
    return folder


def address_of(process: Any) -> str:
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None, process.stderr.read()
    return found[0]


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[httpx.Client]:
    """A client of the command itself, in a process of its own."""
    process = start("serve", home / "photos", "--port", "0", "--coverage", "0.9")
    address = address_of(process)
    assert address.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=address, timeout=300) as opened:
        yield opened
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "Traceback" not in told


def inside(home: Path, run: str, **options: Any) -> httpx.Client:
    """A client of the application in this process."""
    from starlette.testclient import TestClient

    return TestClient(create_app(home / run, **options), base_url="http://localhost", raise_server_exceptions=False)


def png(pixels: Any, size: tuple[int, int] | None = None, kind: str = "PNG") -> bytes:
    from PIL import Image

    image, file = Image.fromarray(pixels), io.BytesIO()
    (image if size is None else image.resize(size)).save(file, kind)
    return file.getvalue()


def error(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    return str(response.json()["error"])


@pytest.mark.long
def test_a_photo_gets_the_answers_of_predict(home: Path, client: httpx.Client):
    model = load_run(home / "photos")
    for at in range(12):
        found = client.post("/api/predict", files={"photo": ("x.png", png(PIXELS[at]))}).json()
        expected = model.predict(PIXELS[at : at + 1, None], coverage=0.9)
        assert expected.probabilities is not None
        assert found["answer"] == found["rules"]["fallback"]
        assert found["answer"]["name"] == expected.classes[0]
        assert found["answer"]["probability"] == pytest.approx(float(expected.probabilities), abs=1e-5)
        assert found["answer"]["kind"] == ("class" if int(expected.positions) >= 0 else found["answer"]["kind"])
        names = [step["name"] for step in found["answer"]["path"]]
        assert "/".join(names) == model.path_to_node(int(expected.nodes))  # type: ignore[arg-type]
        assert found["rules"]["argmax"]["name"] == model.predict(PIXELS[at : at + 1, None]).classes[0]
        assert found["best"][0]["name"] == found["rules"]["argmax"]["name"]
        shown = {node["name"]: node["probability"] for node in found["tree"]}
        for name, below in TREE.items():
            if name in shown:
                whole = expected.all_probabilities
                assert whole is not None
                assert shown[name] == pytest.approx(sum(float(whole[0, int(k)]) for k in below), abs=1e-4)


@pytest.mark.long
def test_probabilities_at_the_threshold_get_the_answers_of_predict(photos: Path):
    """The threshold of a guarantee is that of a sample: one like it is not to be answered."""
    predictor, digits = load_run(photos / "photos"), labelkin.data.load("digits").test.inputs[:20]
    probs = predictor.calibration.probs(predictor.predict(digits).scores)
    assert probs is not None
    for sample, best in zip(digits.split(1), probs.amax(-1).tolist(), strict=True):
        for threshold in (best, nextafter(best, 1)):
            rule = predictor.rule(threshold=threshold)
            answer = Answering(predictor, rule).answer(sample)["answer"]["name"]
            assert [answer] == predictor.predict(sample, decide=rule).classes


def test_the_page_and_its_description(client: httpx.Client):
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in page.headers
    assert "http" not in page.text.replace("http-equiv", "")  # nothing from elsewhere
    model = client.get("/api/model").json()
    assert (model["kind"], model["rule"], model["coverage"], model["classes"]) == ("photo", "fallback", 0.9, 10)
    assert client.get("/serve.js").headers["content-type"].startswith("text/javascript")
    for hidden in ("/docs", "/redoc", "/openapi.json", "/../pyproject.toml", "/serve.py"):
        assert "no such page" in error(client.get(hidden), 404)
    assert "method" in error(client.get("/api/predict"), 405)


@pytest.mark.long
def test_other_sites_are_refused(client: httpx.Client):
    photo = {"photo": ("x.png", png(PIXELS[0]))}
    for host in ("evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "192.168.0.7"):
        assert "Host" in error(client.get("/", headers={"host": host}), 421)
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"):
        assert "Origin" in error(client.post("/api/predict", files=photo, headers={"origin": origin}), 403)
        assert "Origin" in error(client.get("/api/model", headers={"origin": origin}), 403)
    same = {"origin": str(client.base_url).rstrip("/")}
    assert client.post("/api/predict", files=photo, headers=same).status_code == 200
    assert "Origin" in error(client.post("/api/predict", files=photo, headers={"sec-fetch-site": "cross-site"}), 403)
    assert client.options("/api/predict", headers={"access-control-request-method": "POST"}).status_code == 405


@pytest.mark.long
def test_large_and_damaged_requests_get_a_sentence(client: httpx.Client):
    json_kind = {"content-type": "application/json"}
    assert "25 MiB" in error(client.post("/api/predict", content=b"x" * 2**25, headers=json_kind), 413)
    chunks = (b"x" * 2**20 for _ in range(30))
    assert "25 MiB" in error(client.post("/api/predict", content=chunks, headers=json_kind), 413)
    for body in (b"{", b"[" * 100_000, b"\xff", b"[1]", b"null"):
        assert "JSON object" in error(client.post("/api/predict", content=body, headers=json_kind), 400)
    assert "Content-Type" in error(
        client.post("/api/predict", content=b"{}", headers={"content-type": "text/plain"}), 415
    )
    assert "got nothing" in error(client.post("/api/predict", json={}), 400)
    assert "this run takes 'photo', got 'text'" in error(client.post("/api/predict", json={"text": "a"}), 400)
    assert "multipart" in error(client.post("/api/predict", json={"photo": "a"}), 400)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert error(client.post("/api/predict", content=b"--y\r\n", headers=broken), 400)
    assert client.get("/api/model").status_code == 200


@pytest.mark.long
def test_images_that_cannot_be_used_get_a_sentence(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    def sent(content: bytes) -> httpx.Response:
        return client.post("/api/predict", files={"photo": ("x.png", content)})

    whole = png(np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8))
    assert "expected an image file (JPEG, PNG" in error(sent(b"no image"), 400)
    told = error(sent(whole[: len(whole) // 2]), 400)
    assert "cannot be read" in told
    assert "/tmp" not in told
    assert "expected an image file" in error(sent(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), 400)
    large = png(np.zeros((7100, 7100), np.uint8))
    assert len(large) < 10**6
    assert "at most 50 million pixels" in error(sent(large), 400)
    bomb = bytearray(png(PIXELS[0]))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2  # a header that claims 3.6 billion pixels
    assert error(sent(bytes(bomb)), 400)
    for kind in ("JPEG", "BMP", "GIF", "WEBP", "TIFF"):
        assert sent(png(PIXELS[0], (40, 50), kind)).status_code == 200


def test_a_token_is_needed_where_there_is_one(photos: Path):
    with inside(photos, "photos", token="secret", hosts=["*", "box"]) as opened:
        assert (
            opened.get("/", headers={"host": "192.168.0.7:80"}).status_code == 200
        )  # the page says nothing of the run
        assert "Host" in error(opened.get("/", headers={"host": "evil.example"}), 421)
        for given in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "secret"},
            {"authorization": "Bearer é"},
        ):
            headers = [(b"host", b"box"), *((k.encode(), v.encode("utf-8")) for k, v in given.items())]
            assert "token" in error(opened.get("/api/model", headers=headers), 401)
        right = {"host": "box", "authorization": "Bearer secret"}
        assert opened.get("/api/model", headers=right).status_code == 200


@pytest.mark.long
def test_a_text_is_encoded_as_in_training(home: Path):
    with inside(home, "texts") as opened:
        assert opened.get("/api/model").json()["kind"] == "text"
        found = opened.post("/api/predict", json={"text": "the dog with a bone went for a walk"}).json()
        assert found["answer"]["name"] == "dog"
        assert found["answer"]["path"] is None  # its tree was built from the data
        assert found["tree"] is None
        assert "fallback" not in found["rules"]
        unknown = opened.post("/api/predict", json={"text": "!!!"}).json()
        assert "No word" in unknown["remark"]
        for text in ("", "  ", 3, None, ["a"]):
            assert "expected some text" in error(opened.post("/api/predict", json={"text": text}), 400)
        assert "at most 200,000" in error(opened.post("/api/predict", json={"text": "a" * 200_001}), 400)


@pytest.mark.long
def test_a_run_on_columns_of_categories_takes_their_values(tmp_path: Path):
    """A category takes as many inputs of the network as it has values, and every row was refused for having too few."""
    make, colors = np.random.default_rng(0), ["red", "green", "blue; dark"]
    lines = [f"{make.normal()},{colors[k % 3]},{make.normal()},{'ab'[k // 3 % 2]}" for k in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["width,color,depth,label", *lines]))
    labelkin.train(tmp_path / "table.csv", "one-hot", out=tmp_path / "run", epochs=1, calibration=0)
    forms: dict[str, list[dict[str, Any]]] = {
        "2.5,red,-0.5": [
            {"features": [2.5, "red", -0.5]},
            {"features": {"depth": -0.5, "color": "red", "width": 2.5}},
            {"row": "2.5,red,-0.5"},
            {"row": "2.5, red, -0.5"},
            {"row": "2,5;red;-0,5"},
            {"row": "width;depth;color\n2,5;-0,5;red"},
        ],
        '2.5,"blue; dark",-0.5': [{"features": [2.5, colors[2], -0.5]}, {"row": '2.5,"blue; dark",-0.5'}],
        ",red,-0.5": [{"features": [None, "red", -0.5]}, {"row": ",red,-0.5"}],
    }
    predictor = load_run(tmp_path / "run")
    with inside(tmp_path, "run") as opened:
        about = opened.get("/api/model").json()
        assert (about["columns"], about["values"]) == (["width", "color", "depth"], 3)
        for line, given in forms.items():
            (tmp_path / "row.csv").write_text(f"width,color,depth\n{line}\n")
            parts = read_unlabeled([tmp_path / "row.csv"], shape=predictor.shape, samples=predictor.samples)
            expected = predictor.predict(next(iter(parts)).inputs)
            assert expected.probabilities is not None
            for form in given:
                answer = opened.post("/api/predict", json=form).json()["answer"]
                assert answer["name"] == expected.classes[0], form
                assert answer["probability"] == pytest.approx(float(expected.probabilities), abs=1e-5), form
        assert "expected 3 values" in error(opened.post("/api/predict", json={"features": [1, "red"]}), 400)


@pytest.mark.long
def test_a_row_may_be_a_list_an_object_or_pasted_text(home: Path):
    values = FOUND.data[600].tolist()
    (expected,) = load_run(home / "table").predict(torch.tensor([values])).classes
    named = dict(zip(NAMES, values, strict=True))
    shuffled = dict(sorted(named.items(), key=lambda item: item[0][::-1]))
    forms: list[dict[str, Any]] = [
        {"features": values},
        {"features": named},
        {"features": {**shuffled, "id": 7}},
        *({"row": mark.join(map(str, values))} for mark in (",", ";", "\t", " ")),
        {"row": "\t".join(shuffled) + "\n" + "\t".join(map(str, shuffled.values())) + "\n"},
        {"row": json.dumps(values)},
        {"row": json.dumps(shuffled)},
    ]
    with inside(home, "table") as opened:
        assert opened.get("/api/model").json()["columns"] == NAMES
        for form in forms:
            assert opened.post("/api/predict", json=form).json()["answer"]["name"] == expected, form
        for form, sentence in [
            ({"features": values[:-1]}, "expected 64 values"),
            ({"features": {k: v for k, v in named.items() if k != "p3"}}, "'p3' missing"),
            ({"features": [*values[:-1], "many"]}, "expected a number in column 'p63', got 'many'"),
            ({"features": [*values[:-1], [1]]}, "expected numbers or texts"),
            ({"features": "1,2"}, "expected a list of values or an object"),
            ({"row": "1,2\n3,4\n5,6"}, "got 3 lines"),
            ({"row": "a,b\n1"}, "as many values as column names"),
            ({"row": "[" * 100_000}, "damaged JSON"),
            ({"row": " "}, "expected a row of values"),
            ({"row": "1,2", "features": values}, "this run takes 'features' or 'row'"),
        ]:
            told = error(opened.post("/api/predict", json=form), 400)
            assert sentence in told
            assert "/tmp" not in told


@pytest.mark.long
def test_costs_and_runs_without_probabilities(home: Path):
    free = torch.ones(10, 10)
    free[:, 3] = 0
    photo = {"photo": ("x.png", png(PIXELS[0]))}
    with inside(home, "photos", costs=free) as opened:
        assert opened.post("/api/predict", files=photo).json()["answer"]["name"] == "3"
    with inside(home, "plain") as opened:
        found = opened.post("/api/predict", files=photo).json()
        assert list(found["rules"]) == ["argmax"]
        assert found["answer"]["probability"] is None
        assert found["answer"]["name"] == load_run(home / "plain").predict(PIXELS[:1, None]).classes[0]
        assert [entry["probability"] for entry in found["best"]] == [None] * 5


def test_an_unexpected_error_tells_the_client_nothing(photos: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(self: inputs.Samples, given: Any) -> Any:
        raise RuntimeError("a secret of this machine")

    monkeypatch.setattr(inputs.Samples, "read", fails)
    with inside(photos, "photos") as opened:
        told = error(opened.post("/api/predict", json={"text": "a"}), 500)
    assert "secret" not in told


@pytest.mark.long
def test_a_run_that_cannot_be_served_is_refused_before_it_starts(home: Path, tmp_path: Path):
    assert "no such folder" in refused("serve", tmp_path / "none")
    assert "expected a whole number from 0 to 65535" in refused("serve", home / "photos", "--port", "70000")
    with listening("127.0.0.1", 0) as taken:
        told = refused("serve", home / "photos", "--port", str(taken.getsockname()[1]))
    assert "cannot listen on 127.0.0.1" in told
    np.savez(tmp_path / "odd.npz", x=np.random.default_rng(0).normal(size=(60, 2, 4, 4)), y=np.arange(60) % 3)
    labelkin.train(tmp_path / "odd.npz", "one-hot", out=tmp_path / "odd", backbone="mlp", epochs=1)
    with pytest.raises(InputError, match="arrays of shape"):
        create_app(tmp_path / "odd")


@pytest.mark.slow
def test_other_addresses_come_with_a_token(home: Path):
    process = start("serve", home / "photos", "--host", "0.0.0.0", "--port", "0")
    try:
        address, _, fragment = address_of(process).partition("#")
        token = fragment.removeprefix("token=")
        assert len(token) >= 32
        with httpx.Client(base_url=address.replace("0.0.0.0", "127.0.0.1"), timeout=300) as opened:
            assert opened.get("/").status_code == 200
            assert "token" in error(opened.get("/api/model"), 401)
            assert opened.get("/api/model", headers={"authorization": f"Bearer {token}"}).status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
