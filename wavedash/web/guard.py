"""The guard stands before every route and socket: it decides who may ask what, and writes the headers that browsers obey.

Pages of other sites can send requests to servers on this machine, and a name that they control can lead here (DNS rebinding).
So the Host of every request must be this machine's, its Origin, where there is one, this page, and whatever changes anything
carries a token that only the address has that was printed in the terminal.

The guard is the outermost application, so errors and unknown paths go through it too.
"""
from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, NamedTuple

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
METHODS = ("GET", "HEAD", "POST")
MOST_BODY = 64 * 1024
"""Bytes of the largest request; what `wavedash set` takes is far smaller"""
BODY_SECONDS = 10.0
"""How long a client may take to send its request"""
PROTOCOL = "wavedash"
TOKEN_PROTOCOL = "token."
"""Browsers cannot give sockets a header, so the token of a socket is offered as a subprotocol"""
WRITABLE = "wavedash.writable"
"""The key of the scope that says whether the request carried the token"""
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    why: str


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine alone."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Guard:
    """Passes on what is allowed, and answers everything else itself."""

    def __init__(self, app: App, token: str, host: str, public: Collection[str]) -> None:
        """`host` is the address that the server is bound to. `public` are the paths that need no token even where it is not
        that of this machine alone: files without data."""
        self.app, self.token, self.bound, self.public = app, token.encode(), host.strip("[]").lower(), frozenset(public)
        self.loopback = is_loopback(host)
        self._names = {self.bound, socket.gethostname().lower()}
        self._everywhere = self.bound in ("0.0.0.0", "::", "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        http = scope["type"] == "http"
        guarded = _with_headers(send)
        refused = self.judge(scope)
        if refused is None and http and scope["method"] == "POST":
            body = await _body(scope, receive)
            if isinstance(body, Refusal):
                refused = body
            else:
                receive = _again(body, receive)
        if refused is None:
            await self.app(scope, receive, guarded)
        elif http:
            await _answer(guarded, "http.response", refused)
        elif "websocket.http.response" in scope.get("extensions", {}):
            await _answer(guarded, "websocket.http.response", refused)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": refused.why[:100]})

    def judge(self, scope: Scope) -> Refusal | None:
        """Returns why a request is refused, or None. It also writes into the scope whether the request carried the token."""
        headers: dict[str, str] = {}
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1").lower()
            if name in headers and name in ("host", "origin", "authorization", "content-length"):
                return Refusal(400, f"the request has two headers {name}")
            headers[name] = f"{headers[name]},{value.decode('latin-1')}" if name in headers else value.decode("latin-1")
        socketed = scope["type"] == "websocket"
        if not socketed and scope["method"] not in METHODS:
            return Refusal(405, f"the method {scope['method'][:20]} is not used here")
        host = headers.get("host", "")
        if not self._is_here(host):
            return Refusal(403, "the Host of the request is not this server: open the address that was printed in the terminal")
        changing = socketed or scope["method"] == "POST"
        origin = headers.get("origin")
        if origin is None and changing:
            return Refusal(403, "the request has no Origin: only the page itself may ask this")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return Refusal(403, "the request comes from another site, which may not ask anything here")
        scope[WRITABLE] = self._has_token(headers, socketed)
        if socketed and PROTOCOL not in _protocols(headers):
            return Refusal(400, f"the socket must offer the subprotocol {PROTOCOL}")
        needed = scope["path"] not in self.public if not self.loopback else not socketed and scope["method"] == "POST"
        if needed and not scope[WRITABLE]:
            return Refusal(401, "this needs the token: open the address with #token=... that was printed in the terminal")
        return None

    def _is_here(self, host: str) -> bool:
        found = HOST.fullmatch(host)
        if found is None or int(found["port"] or 0) > 65535:
            return False
        name = found["name"].strip("[]").lower()
        if is_loopback(name) or (not self.loopback and name in self._names):
            return True
        # A server on all addresses does not know which of them leads here. Only names can be made to lead elsewhere.
        return self._everywhere and _is_address(name)

    def _has_token(self, headers: dict[str, str], socketed: bool) -> bool:
        if socketed:
            given = [name.removeprefix(TOKEN_PROTOCOL) for name in _protocols(headers) if name.startswith(TOKEN_PROTOCOL)]
        else:
            scheme, _, value = headers.get("authorization", "").partition(" ")
            given = [value.strip()] if scheme.lower() == "bearer" else []
        return len(given) == 1 and hmac.compare_digest(given[0].encode("latin-1"), self.token)


def _protocols(headers: dict[str, str]) -> list[str]:
    return [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _body(scope: Scope, receive: Receive) -> bytes | Refusal:
    """Reads the request as a whole, up to the limit."""
    length = next((value for name, value in scope["headers"] if name.lower() == b"content-length"), b"0")
    too_large = Refusal(413, f"the request is larger than {MOST_BODY:,} bytes")
    if not length.isdigit() or int(length[:20]) > MOST_BODY:
        return too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return Refusal(400, "the request ended early")
                body += message.get("body", b"")
                if len(body) > MOST_BODY:
                    return too_large
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return Refusal(408, "the request took too long to arrive")


def _again(body: bytes, receive: Receive) -> Receive:
    """Hands over a request that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _with_headers(send: Send) -> Send:
    """Adds the headers to every answer, in place of those that it has of the same names."""
    ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    names = {name for name, _ in ours}

    async def guarded(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
            kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in names]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return guarded


async def _answer(send: Send, kind: str, refused: Refusal) -> None:
    body = json.dumps({"error": refused.why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 405:
        headers.append((b"allow", ", ".join(METHODS).encode()))
    if refused.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the request must not be read as the next one
    await send({"type": f"{kind}.start", "status": refused.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
