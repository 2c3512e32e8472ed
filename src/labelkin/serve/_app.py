"""The web application: the page, its files, and two JSON endpoints."""

import json
from collections.abc import Callable, Collection
from importlib.resources import files
from threading import Lock
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from labelkin._checks import InputError
from labelkin._version import __version__
from labelkin.decide import Rule
from labelkin.runs import Predictor
from labelkin.serve._answer import Answering
from labelkin.serve._guard import LARGEST_BODY, Guard
from labelkin.serve._inputs import Samples

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/serve.css": ("serve.css", "text/css; charset=utf-8"),
    "/serve.js": ("serve.js", "text/javascript; charset=utf-8"),
}


class Endpoints:
    """The JSON endpoints of a run.

    Args:
        predictor: The run.
        rule: The rule that decides.
    """

    def __init__(self, predictor: Predictor, rule: Rule) -> None:
        self.samples, self.answering = Samples(predictor), Answering(predictor, rule)
        self.predictor, self.rule = predictor, rule
        self._one_at_a_time = Lock()  # each sample uses all threads

    async def model(self, request: Request) -> Response:
        """Describe the run."""
        spec, columns = self.predictor.spec, self.samples.columns
        return JSONResponse(
            {
                "version": __version__,
                "run": self.predictor.folder.path.name,
                "objective": spec.objective,
                "kind": self.samples.kind,
                "classes": len(self.predictor.classes),
                "columns": columns,
                "values": self.samples.values if self.samples.kind == "features" else None,
                "rule": self.rule.name,
                "actions": list(self.rule.actions),
                "coverage": None if self.rule.guarantee is None else round(1 - self.rule.guarantee.alpha, 9),
                "confidence": None if self.rule.guarantee is None else self.rule.guarantee.confidence,
            }
        )

    async def predict(self, request: Request) -> Response:
        """Answer for one sample."""
        given = await _fields(request)
        return JSONResponse(await run_in_threadpool(self._answered, given))

    def _answered(self, given: dict[str, Any]) -> dict[str, Any]:
        with self._one_at_a_time:
            inputs, remark = self.samples.read(given)
            return {**self.answering.answer(inputs), "remark": remark}


def build_app(predictor: Predictor, rule: Rule, *, hosts: Collection[str], token: str | None) -> FastAPI:
    """Return the application; see `labelkin.serve.create_app`."""
    endpoints = Endpoints(predictor, rule)
    app = FastAPI(
        title="labelkin",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        routes=[
            *(Route(path, _file(name, kind), methods=["GET"]) for path, (name, kind) in PAGE.items()),
            Route("/api/model", endpoints.model, methods=["GET"]),
            Route("/api/predict", endpoints.predict, methods=["POST"]),
        ],
        exception_handlers={InputError: _bad_input, HTTPException: _no_page, Exception: _unexpected},
    )
    app.add_middleware(Guard, hosts=hosts, token=token)
    return app


async def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request: of a form with a file, or of a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=4, max_part_size=LARGEST_BODY) as form:
            return {
                name: await value.read() if isinstance(value, UploadFile) else value for name, value in form.items()
            }
    if kind != "application/json":
        raise HTTPException(415, "Content-Type: expected application/json or multipart/form-data.")
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InputError("request: expected a JSON object, got damaged JSON.") from None
    if not isinstance(found, dict):
        raise InputError('request: expected a JSON object, such as {"text": "..."}.')
    return found


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    content = (files("labelkin.serve") / "page" / name).read_bytes()
    return lambda request: Response(content, media_type=kind)


async def _bad_input(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _no_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "path: there is no such page here.", 405: "method: expected another one for this path."}
    return JSONResponse({"error": known.get(error.status_code, str(error.detail))}, error.status_code)


async def _unexpected(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "The server failed on this request; see its output for the reason."}, 500)
