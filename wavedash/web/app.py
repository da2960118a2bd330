"""The routes of the page. Every answer is JSON, except the files of the page and the recordings.

Work with files is done in threads (Starlette runs plain functions there), so that a slow disk delays nobody's frames.
"""
from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from wavedash import __version__
from wavedash.errors import UserError
from wavedash.runs.plain import from_json
from wavedash.web.games import Game, first_game
from wavedash.web.guard import WRITABLE, Guard, is_loopback
from wavedash.web.library import RECORDINGS, UnknownError
from wavedash.web.live import GRACE, Live
from wavedash.web.players import Players
from wavedash.web.recorded import Recorded
from wavedash.web.run import Run
from wavedash.web.run_data import RunData
from wavedash.web.shipped import shipped
from wavedash.web.stage.protocol import plain
from wavedash.web.steering import BusyError, NoAnswerError, NotTrainedError, Steering

STATIC = Path(__file__).parent / "static"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
    "/static/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/static/page.css": ("page.css", "text/css; charset=utf-8"),
}
"""The files of the page, by path. They hold no data, so they are the only answers that never need the token."""
MOST_POINTS = 20_000
SIZES = ("1", "2", "3", "4")
"""Cars per team that a ladder can be asked for"""
STATUS: dict[type[Exception], int] = {
    UserError: 400, UnknownError: 404, NotTrainedError: 409, BusyError: 503, NoAnswerError: 504,
}
"""Which status a mistake is answered with; its words are the answer"""


class Json(JSONResponse):
    """JSON has no NaN: what is not finite is null."""

    def render(self, content: Any) -> bytes:
        try:
            return _encoded(content)
        except ValueError:  # hardly ever, and to look for it in every answer would take longer than all else
            return _encoded(plain(content))


def make_app(players: Players, token: str, host: str = "127.0.0.1", run: Callable[[], str | None] = lambda: None,
             first: Callable[[], Game] | None = None, who: dict[str, str] | None = None, grace: float = GRACE) -> Guard:
    """The application, with its guard. `host` is the address that it is bound to, `run` says the id of the run to show first,
    `first` what is played first (see Live), `who` the players where they are known already, `grace` the seconds for which a
    game goes on without viewers."""
    library = players.library
    data, recorded, steering = RunData(library), Recorded(library), Steering()
    live = Live(players, library.root / RECORDINGS, first or (lambda: first_game(players)), grace)

    def about(request: Request) -> Any:
        return {"version": __version__, "loopback": is_loopback(host), "writable": request.scope[WRITABLE], "run": run(),
                "watching": live.watching or who}

    def metrics(request: Request) -> Any:
        names, after = request.query_params.get("names"), request.query_params.get("after")
        points = int(_number(request.query_params.get("points", "1500"), "points"))
        if not 1 <= points <= MOST_POINTS:
            raise UserError(f"points must be between 1 and {MOST_POINTS:,}")
        asked = None if names is None else [name for name in names.split(",") if name]
        return data.metrics(_run(request), asked, points, None if after is None else _number(after, "after"))

    def ladder(request: Request) -> Any:
        size = request.query_params.get("size")
        if size is not None and size not in SIZES:
            raise UserError(f"size must be one of {', '.join(SIZES)}")
        return data.ladder(_run(request), None if size is None else int(size))

    def recording(request: Request) -> Response:
        name, size, pieces = recorded.open(request.path_params["id"])
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(size)}
        return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)

    async def settings(request: Request) -> Any:
        if not request.scope[WRITABLE]:  # a run is asked, so this is no mere look into its folder
            raise HTTPException(401, "the settings of a run need the token: open the address with #token=... that was printed")
        return await steering.settings(await run_in_threadpool(_run, request))

    async def set_(request: Request) -> Any:
        try:
            asked = from_json(await request.body())
        except ValueError as error:
            raise UserError(f"the request is no JSON: {error}") from None
        return await steering.set(await run_in_threadpool(_run, request), asked)

    def _run(request: Request) -> Run:
        return library.run(request.path_params["id"])

    gets: dict[str, Callable[[Request], Any]] = {
        "/api/about": about,
        "/api/runs": lambda request: data.rows(),
        "/api/runs/{id}": lambda request: data.details(_run(request)),
        "/api/runs/{id}/metrics": metrics,
        "/api/runs/{id}/events": lambda request: data.events(_run(request)),
        "/api/runs/{id}/ladder": ladder,
        "/api/players": lambda request: [player.as_json() for player in players.all()],
        "/api/starts": lambda request: shipped("start"),
        "/api/recordings": lambda request: recorded.rows(),
    }

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await live.close()

    app = Starlette(
        routes=[*(Route(path, _file(*file), methods=["GET"]) for path, file in FILES.items()),
                *(Route(path, _answering(answer), methods=["GET"]) for path, answer in gets.items()),
                Route("/api/recordings/{id}", recording, methods=["GET"]),
                Route("/api/runs/{id}/settings", _awaiting(settings), methods=["GET"]),
                Route("/api/runs/{id}/set", _awaiting(set_), methods=["POST"]),
                WebSocketRoute("/api/watch", live.serve)],
        exception_handlers={**{kind: _mistake(status) for kind, status in STATUS.items()}, HTTPException: _http,
                            Exception: _failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return Guard(app, token, host, FILES)


def _answering(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        return Json(answer(request))

    return endpoint


def _awaiting(answer: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Json(await answer(request))

    return endpoint


def _file(name: str, media: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            return Response((STATIC / name).read_bytes(), media_type=media)
        except OSError:
            return Json({"error": f"{name} of the page is missing: install the package again"}, 404)

    return endpoint


def _mistake(status: int) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        return Json({"error": str(error)}, status)

    return answer


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


def _encoded(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
