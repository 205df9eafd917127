"""Static files by WhiteNoise, without leaving the event loop.

WhiteNoise's own middleware is synchronous: under ASGI it would put every request into a thread and hold that
thread while the view runs, and its streamed files make Django warn. Ours answers with the whole (small) file.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    async_capable = True
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        response = self.static_response(request)
        if response is None:
            return self.get_response(request)
        return _ready(response) if iscoroutinefunction(self) else response

    def static_response(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path_info.startswith(self.static_prefix):
            return None
        find = self.find_file if self.autorefresh else self.files.get
        static_file = find(request.path_info)
        return None if static_file is None else self.serve(static_file, request)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        body = b"" if found.file is None else found.file.read()
        if found.file is not None:
            found.file.close()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response


async def _ready(response: HttpResponse) -> HttpResponse:
    return response
