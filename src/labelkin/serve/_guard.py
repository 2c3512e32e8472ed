"""Guard every request: checks of Host, Origin and token, limits of size and time, and security headers."""

import asyncio
import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 25 * 1024 * 1024  # bytes
LONGEST_WAIT = 30.0  # seconds for the whole body of a request
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is answered with an error before it is processed."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """ASGI middleware that refuses what does not come from the page itself or from a program with the token.

    A browser sends the name that it connects to (Host) and the site of the page that sends the request (Origin). Names that are
    not this server's are refused, because another site can point its own name at this machine (DNS rebinding); so are requests
    from pages of other sites. Programs that send no Origin header are allowed.

    Args:
        app: The application.
        hosts: The names and addresses that the server answers to. "*" stands for every address of the machine, but for no name.
        token: The token that requests below /api/ must have, if any.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], token: str | None) -> None:
        self.app, self.hosts, self.token = app, {host.lower() for host in hosts}, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        body = Body(receive)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, body.receive, answer)
        except Refused as refused:
            response = JSONResponse({"error": refused.sentence}, refused.status, headers={"connection": "close"})
            await response(scope, receive, answer)

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        host = _only(headers, b"host")
        if host is None or not self._is_known(_name_of(host)):
            raise Refused(421, "Host: this server does not have that name; open the address that it printed.")
        origin = _only(headers, b"origin")
        if b"origin" in headers and (origin is None or urlsplit(origin).netloc.lower() != host.lower()):
            raise Refused(403, "Origin: pages of other sites may not use this server.")
        if _only(headers, b"sec-fetch-site") == "cross-site" and scope["method"] not in ("GET", "HEAD"):
            raise Refused(403, "Origin: pages of other sites may not use this server.")
        if self.token is not None and scope["path"].startswith("/api/"):
            given = _only(headers, b"authorization") or ""
            if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
                raise Refused(
                    401, "token: expected the header 'Authorization: Bearer TOKEN' with the token of this server."
                )
        length = _only(headers, b"content-length")
        if length is not None and (not length.isdecimal() or int(length[:20]) > LARGEST_BODY):
            raise Refused(413, TOO_LARGE)

    def _is_known(self, name: str) -> bool:
        return name in self.hosts or ("*" in self.hosts and _is_address(name))


TOO_LARGE = f"request: expected at most {LARGEST_BODY // 1024**2} MiB, got more; send less."


class Body:
    """The body of a request, up to a size and within a time."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size, self._until = receive, 0, 0.0
        self._complete = False

    async def receive(self) -> Message:
        """Return the next message of the request."""
        if self._complete:
            return await self._receive()  # waits for the client to disconnect
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + LONGEST_WAIT
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._until - now))
        except TimeoutError:
            raise Refused(408, f"request: its body did not arrive within {LONGEST_WAIT:g} seconds.") from None
        self._size += len(message.get("body", b""))
        if self._size > LARGEST_BODY:
            raise Refused(413, TOO_LARGE)
        self._complete = not message.get("more_body", False)
        return message


def _only(headers: dict[bytes, list[bytes]], name: bytes) -> str | None:
    """Return the value of a header; None if it is missing or repeated."""
    values = headers.get(name, [])
    return values[0].decode("latin-1") if len(values) == 1 else None


def _name_of(host: str) -> str:
    """Return a Host header without its port.

    >>> _name_of("localhost:8765"), _name_of("[::1]:8765"), _name_of("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
