"""Serve a run: its application, and the address that it listens on."""

import ipaddress
import os
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torch import Tensor

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.decide import RuleName
from labelkin.runs import load_run

if TYPE_CHECKING:
    from fastapi import FastAPI

LOCAL = ("localhost", "127.0.0.1", "::1")
USE = "labelkin serve"


def create_app(
    run: str | os.PathLike[str],
    *,
    decide: RuleName | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    confidence: float | None = None,
    costs: Any = None,
    shares: Tensor | None = None,
    hosts: Collection[str] = LOCAL,
    token: str | None = None,
) -> "FastAPI":
    """Return the web application of a run, for any ASGI server.

    `GET /` is the page. `GET /api/model` describes the run, and `POST /api/predict` answers for one sample: a form with the
    file `photo`, or a JSON object with `text`, `features` (a list, or an object by column) or `row` (the same as text). Bad
    input gets a JSON object with a sentence in `error` and a status of 4xx.

    Args:
        run: The folder of a finished run on images, texts or rows of features, or the result of `labelkin.train`.
        decide: "argmax", "crm" or "fallback"; see `labelkin.runs.Predictor.rule`, also for the next five.
        threshold: The threshold of "fallback".
        coverage: The coverage of "fallback".
        confidence: The confidence of the coverage.
        costs: Costs for "crm", also of actions: a file, a mapping, a DataFrame or a matrix.
        shares: (K,) shares or counts of the classes in the new samples, in the order of the run's classes.
        hosts: The names and addresses that requests may ask for; others are refused, so that no other site can reach the
            server under its own name. "*" stands for all addresses, but for no names.
        token: The token that requests below /api/ must send as `Authorization: Bearer TOKEN`. None if anyone who can reach the
            server may use it.

    Returns:
        A FastAPI application.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> app = labelkin.serve.create_app(run)
        >>> [route.path for route in app.routes]
        ['/', '/serve.css', '/serve.js', '/api/model', '/api/predict']
    """
    require("fastapi", extra="serve", use=USE)
    require("python_multipart", extra="serve", use=USE)
    from labelkin.serve._app import build_app

    predictor = load_run(run)
    rule = predictor.rule(
        decide, threshold=threshold, coverage=coverage, confidence=confidence, costs=costs, shares=shares
    )
    return build_app(predictor, rule, hosts=hosts, token=token)


def serve(
    run: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    decide: RuleName | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    confidence: float | None = None,
    costs: Any = None,
    shares: Tensor | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Serve a run until the process is interrupted.

    By default, only this machine can reach it. At any other address, requests need a token, which is part of the address that
    is printed at the start. The connection is not encrypted.

    Args:
        run: The folder of a finished run on images, texts or rows of features, or the result of `labelkin.train`.
        host: The address to listen on; "0.0.0.0" for all addresses of the machine.
        port: The port; 0 for any free one.
        decide: "argmax", "crm" or "fallback"; see `labelkin.runs.Predictor.rule`, also for the next five.
        threshold: The threshold of "fallback".
        coverage: The coverage of "fallback".
        confidence: The confidence of the coverage.
        costs: Costs for "crm", also of actions: a file, a mapping, a DataFrame or a matrix.
        shares: (K,) shares or counts of the classes in the new samples, in the order of the run's classes.
        say: Called with the line that contains the address.

    Example:
        >>> import labelkin
        >>> labelkin.serve.serve("runs/missing", port=0)
        Traceback (most recent call last):
        labelkin._checks.InputError: runs/missing: there is no such folder.
    """
    uvicorn = require("uvicorn", extra="serve", use=USE)
    token = None if is_local(host) else secrets.token_urlsafe(24)
    app = create_app(
        run,
        decide=decide,
        threshold=threshold,
        coverage=coverage,
        confidence=confidence,
        costs=costs,
        shares=shares,
        hosts=allowed_hosts(host),
        token=token,
    )
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=64,
            timeout_keep_alive=5,
            ws="none",
        )
        say(
            f"Serving {os.fspath(run)} at {address if token is None else f'{address}#token={token}'} (stop with Ctrl-C)"
        )
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            uvicorn.Server(config).run(sockets=[listener])


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("::1"), is_local("0.0.0.0"), is_local("192.168.1.2")
    (True, True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str) -> tuple[str, ...]:
    """Return the names and addresses that requests may ask for if the server listens on `host`."""
    if is_local(host):
        return (*LOCAL, host)
    every = host in ("0.0.0.0", "::")
    return (*LOCAL, host, socket.gethostname(), *(["*"] if every else []))


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; raises InputError if it cannot."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        raise InputError(f"port: expected a whole number from 0 to 65535, got {port!r}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InputError(
            f"host: cannot listen on {host}, port {port} ({error.strerror or error}); choose another with --host or --port."
        ) from error
    return listener
