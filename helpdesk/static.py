"""Static files by WhiteNoise, as whole (small) files: those that it streams make Django warn under ASGI."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.static_response(request) or self.get_response(request)

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
