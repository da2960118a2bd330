"""The routes of the page. Every answer is JSON, but the files of the page and the recordings.

Work with files is done in threads (Starlette runs plain functions there), so that a slow disk delays nobody's frames.
"""
from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wavedash import __version__
from wavedash.errors import UserError
from wavedash.web.guard import WRITABLE, Guard, is_loopback
from wavedash.web.library import Library, UnknownError
from wavedash.web.run_data import RunData

STATIC = Path(__file__).parent / "static"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/static/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/static/page.css": ("page.css", "text/css; charset=utf-8"),
}
"""The files of the page, by path. They hold no data, so they are the only answers that never need the token."""
MOST_POINTS = 20_000


class Json(JSONResponse):
    """JSON has no NaN: what is not finite is null."""

    def render(self, content: Any) -> bytes:
        return json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def make_app(library: Library, token: str, host: str = "127.0.0.1", run: str | None = None) -> Guard:
    """The application, with its guard. `host` is the address that it is bound to, `run` the id of the run to show first."""
    data = RunData(library)

    def about(request: Request) -> Any:
        return {"version": __version__, "loopback": is_loopback(host), "writable": request.scope[WRITABLE], "run": run,
                "watching": None}

    def metrics(request: Request) -> Any:
        names, after = request.query_params.get("names"), request.query_params.get("after")
        points = int(_number(request.query_params.get("points", "1500"), "points"))
        if not 1 <= points <= MOST_POINTS:
            raise UserError(f"points must be between 1 and {MOST_POINTS:,}")
        asked = None if names is None else [name for name in names.split(",") if name]
        return data.metrics(_run(request), asked, points, None if after is None else _number(after, "after"))

    def _run(request: Request) -> Any:
        return library.run(request.path_params["id"])

    routes = {
        "/api/about": about,
        "/api/runs": lambda request: [data.row(one) for one in library.runs()],
        "/api/runs/{id}": lambda request: data.details(_run(request)),
        "/api/runs/{id}/metrics": metrics,
        "/api/runs/{id}/events": lambda request: data.events(_run(request)),
        "/api/runs/{id}/ladder": lambda request: data.ladder(_run(request)),
        "/api/players": lambda request: [player.as_json() for player in library.players()],
        "/api/starts": lambda request: library.starts(),
    }
    app = Starlette(
        routes=[*(Route(path, _file(*file), methods=["GET"]) for path, file in FILES.items()),
                *(Route(path, _answering(answer), methods=["GET"]) for path, answer in routes.items())],
        exception_handlers={UnknownError: _unknown, UserError: _mistake, HTTPException: _http, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return Guard(app, token, host, FILES)


def _answering(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        return Json(answer(request))

    return endpoint


def _file(name: str, media: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            return Response((STATIC / name).read_bytes(), media_type=media)
        except OSError:
            return Json({"error": f"{name} of the page is missing: install the package again"}, 404)

    return endpoint


def _unknown(request: Request, error: Exception) -> Response:
    return Json({"error": str(error)}, 404)


def _mistake(request: Request, error: Exception) -> Response:
    return Json({"error": str(error)}, 400)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Json({"error": error.detail}, error.status_code, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    return Json({"error": "the server made a mistake; the run is not touched by it"}, 500)


def _number(text: str, name: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise UserError(f"{name} must be a number")
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
