"""Every setting of the product. The environment is read here and nowhere else."""

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from django.core.management.utils import get_random_secret_key
from django.utils.translation import gettext_lazy as _

from helpdesk import configuration as read
from helpdesk.configuration import ConfigurationError
from helpdesk.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
read.add_env_file(env, BASE_DIR / ".env")

# What the product writes on this machine: the embedded database, collected static files, a generated key.
VAR_DIR = Path(read.text(env, "VAR_DIR", str(BASE_DIR / "var"))).absolute()

# --- the assistant ------------------------------------------------------------------------------------------

ASSISTANT_BACKEND = read.choice(env, "ASSISTANT_BACKEND", "claude", ("claude", "rehearsal"))
REHEARSAL_PORT = read.integer(env, "REHEARSAL_PORT", 8011, maximum=65_535)
ANTHROPIC_API_KEY = read.text(env, "ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = read.url(env, "ANTHROPIC_BASE_URL")
if ASSISTANT_BACKEND == "rehearsal":
    ANTHROPIC_API_KEY = "rehearsal"  # a real key never goes to the stand-in
    ANTHROPIC_BASE_URL = ANTHROPIC_BASE_URL or f"http://127.0.0.1:{REHEARSAL_PORT}"
elif read.is_placeholder(ANTHROPIC_API_KEY):
    raise ConfigurationError(
        "ANTHROPIC_API_KEY is not set: set it to your key from the Anthropic console"
        " (or set ASSISTANT_BACKEND=rehearsal to try the product without one)."
    )
ASSISTANT_MODEL = read.text(env, "ASSISTANT_MODEL", "claude-sonnet-5-5")
ASSISTANT_EFFORT = read.optional_choice(
    env, "ASSISTANT_EFFORT", "low", ("low", "medium", "high", "xhigh", "max")
)
ASSISTANT_MAX_TOKENS = read.integer(env, "ASSISTANT_MAX_TOKENS", 2048, maximum=128_000)
ASSISTANT_MAX_STEPS = read.integer(env, "ASSISTANT_MAX_STEPS", 8, maximum=50)
# Window of the model: a conversation that no longer fits loses its oldest turns, visibly.
ASSISTANT_CONTEXT_TOKENS = read.integer(env, "ASSISTANT_CONTEXT_TOKENS", 200_000, minimum=8_000)
ASSISTANT_DAILY_TOKENS_PER_USER = read.integer(env, "ASSISTANT_DAILY_TOKENS_PER_USER", 500_000, minimum=0)
ASSISTANT_CONCURRENT_TURNS_PER_USER = read.integer(env, "ASSISTANT_CONCURRENT_TURNS_PER_USER", 3)
ASSISTANT_MESSAGES_PER_MINUTE = read.integer(env, "ASSISTANT_MESSAGES_PER_MINUTE", 20)

# --- the site -----------------------------------------------------------------------------------------------

# Shows people where the code failed: for whoever works on it.
DEBUG = read.flag(env, "DEBUG", False)
# One machine, to try the product or to work on it: a key of its own, plain http, logs for reading, static
# files straight from the source, demo data allowed.
TRIAL = read.flag(env, "TRIAL", DEBUG)
ALLOWED_HOSTS = read.names(env, "ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = read.names(env, "CSRF_TRUSTED_ORIGINS")


def _secret_key() -> str:
    key = read.text(env, "SECRET_KEY")
    if key:
        return key
    if not TRIAL:
        raise ConfigurationError(
            "SECRET_KEY is not set: set it to a long random text (or set TRIAL=on to try the product)."
        )
    return _generated_secret_key(VAR_DIR / "secret_key")


def _generated_secret_key(path: Path) -> str:
    """The key that this checkout made for itself, so that logins survive a restart."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f"{path.name}.{os.getpid()}")
        own.touch(mode=0o600)
        own.write_text(get_random_secret_key())
        with suppress(FileExistsError):
            path.hardlink_to(own)  # of several processes at a first start one wins
        own.unlink()
    return path.read_text().strip()


SECRET_KEY = _secret_key()

for origin in CSRF_TRUSTED_ORIGINS:
    if not origin.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"CSRF_TRUSTED_ORIGINS holds {origin!r}: write it with its scheme, for example https://{origin}."
        )

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "helpdesk.apps.LoginLockConfig",  # django-axes
    "csp",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tickets",
    "tickets.api",
    "retrieval",
    "assistant",
    "helpdesk",
]

MIDDLEWARE = [
    "helpdesk.middleware.request_log",
    "django.middleware.security.SecurityMiddleware",
    "helpdesk.static.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "helpdesk.middleware.DatabaseUnavailableMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "helpdesk.zone.browser_time_zone",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",  # after all that could answer, as it does so in place of a login page
    "helpdesk.middleware.in_one_thread",  # innermost
]

ROOT_URLCONF = "helpdesk.urls"
ASGI_APPLICATION = "helpdesk.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- the database -------------------------------------------------------------------------------------------

EMBEDDED_POSTGRES_DIR = VAR_DIR / "postgres"


def _database() -> dict[str, Any]:
    address = read.text(env, "DATABASE_URL")
    if not address:
        return {
            "ENGINE": "helpdesk.embedded_backend",
            "NAME": "helpdesk",
            "CONN_HEALTH_CHECKS": True,
        }
    # Behind PgBouncer in transaction mode a cursor would outlive the connection that it belongs to.
    # Statements are not prepared, and locks end with their transaction anyway.
    pooled = read.flag(env, "DATABASE_POOLED", False)
    return read.postgres(address) | {"CONN_HEALTH_CHECKS": True, "DISABLE_SERVER_SIDE_CURSORS": pooled}


DATABASES = {"default": _database()}
# A replica that searches read from, see retrieval/replica.py. Read-only even if it leads to the primary.
if SEARCH_DATABASE_URL := read.text(env, "SEARCH_DATABASE_URL"):
    DATABASES["search"] = read.replica(SEARCH_DATABASE_URL) | {"CONN_HEALTH_CHECKS": True}
# The most that one web process opens; see helpdesk/pool.py.
DATABASE_CONNECTIONS = read.integer(env, "DATABASE_CONNECTIONS", 12, minimum=4, maximum=100)

# --- people and languages -----------------------------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # refuses before a password is looked at
    "django.contrib.auth.backends.ModelBackend",
]
# By name and address together: whoever knows a colleague's name must not be able to lock the colleague out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = read.integer(env, "LOGIN_ATTEMPTS", 10, maximum=1_000)
LOGIN_LOCK_MINUTES = read.integer(env, "LOGIN_LOCK_MINUTES", 15, maximum=1_440)
AXES_COOLOFF_TIME = timedelta(minutes=LOGIN_LOCK_MINUTES)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "helpdesk.security.client_address"
AXES_LOCKOUT_CALLABLE = "helpdesk.security.locked_out"
AXES_DISABLE_ACCESS_LOG = True  # our own audit entries say it
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # ours is in helpdesk.admin
# The login service of the company, by OpenID Connect (helpdesk.single_sign_on).
OIDC_ISSUER = read.url(env, "OIDC_ISSUER")
OIDC_NAME = read.text(env, "OIDC_NAME", "single sign-on") if OIDC_ISSUER else ""
OIDC_RP_CLIENT_ID = read.text(env, "OIDC_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = read.text(env, "OIDC_CLIENT_SECRET")
OIDC_RP_SCOPES = read.text(env, "OIDC_SCOPES", "openid profile email")
OIDC_RP_SIGN_ALGO = read.choice(env, "OIDC_SIGN_ALGORITHM", "RS256", ("RS256", "RS512", "ES256", "ES512"))
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 5
OIDC_USERNAME_CLAIM = read.text(env, "OIDC_USERNAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = read.text(env, "OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = read.mapping(env, "OIDC_GROUPS")
if OIDC_ISSUER:
    read.check_oidc(OIDC_ISSUER, OIDC_RP_CLIENT_ID, OIDC_RP_CLIENT_SECRET, OIDC_GROUPS)
    AUTHENTICATION_BACKENDS.append("helpdesk.single_sign_on.Backend")
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

LANGUAGE_CODE = "en"
LANGUAGES = [("de", _("German")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = read.time_zone(env, "TIME_ZONE", "UTC")

# --- files and headers --------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = None if TRIAL else VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if TRIAL
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = TRIAL

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],  # data: for the icons inside Pico.css and the admin's stylesheets
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 3600 * read.integer(env, "SESSION_HOURS", 12, maximum=8_760)
# How many proxies of our own stand before the site. Without one, what they would set is the client's word.
TRUSTED_PROXIES = read.integer(env, "TRUSTED_PROXIES", 0, minimum=0, maximum=10)
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
HTTPS_ONLY = read.flag(env, "COOKIES_OVER_HTTPS_ONLY", not TRIAL)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS_ONLY
# Asked by machines on the inner side of the proxy.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^metrics$"]
SECURE_HSTS_SECONDS = read.integer(env, "HSTS_SECONDS", 2_592_000, minimum=0) if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
# The preload list of browsers takes whole domains: for whoever owns the domain to decide.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

METRICS_TOKEN = read.text(env, "METRICS_TOKEN")

LOGGING_CONFIG = "helpdesk.logs.configure"
LOGGING = logging_config(
    as_json=not TRIAL, level=read.choice(env, "LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
)

# --- the API ------------------------------------------------------------------------------------------------

API_REQUESTS_PER_MINUTE = read.integer(env, "API_REQUESTS_PER_MINUTE", 600, minimum=0)
API_MAX_BODY_BYTES = read.integer(env, "API_MAX_BODY_BYTES", 5_000_000, minimum=1_000)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tickets.api.authentication.TokenAuthentication",
        "tickets.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["tickets.api.permissions.TicketRights"],
    "DEFAULT_THROTTLE_CLASSES": ["tickets.api.throttling.RateThrottle"],
    "DEFAULT_PARSER_CLASSES": ["tickets.api.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "tickets.api.problems.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Helpdesk",
    "DESCRIPTION": (
        "Tickets, their comments and their history, and the search by meaning.\n\n"
        "Send a token as `Authorization: Bearer hd_…`. Errors are problem documents (RFC 9457) in the"
        " language of `Accept-Language`. Lists come in pages: follow `next` until it is null."
    ),
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "tickets.api.schema.close_requests",
    ],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "StatusEnum": "tickets.models.Ticket.Status",
        "PriorityEnum": "tickets.models.Ticket.Priority",
        "SourceEnum": "tickets.models.Ticket.Source",
        "DuplicateCheckEnum": "tickets.models.Ticket.DuplicateCheck",
        "ViaEnum": "tickets.models.Via",
        "EventKindEnum": "tickets.models.TicketEvent.Kind",
    },
}

# --- embeddings and search ----------------------------------------------------------------------------------

VOYAGE_API_KEY = read.text(env, "VOYAGE_API_KEY", "placeholder")
if read.is_placeholder(VOYAGE_API_KEY):
    VOYAGE_API_KEY = "placeholder"
EMBEDDING_PROVIDER = read.choice(
    env,
    "EMBEDDING_PROVIDER",
    "off" if VOYAGE_API_KEY == "placeholder" else "voyage",
    ("voyage", "local", "openai", "off"),
)
VOYAGE_BASE_URL = read.url(
    env,
    "VOYAGE_BASE_URL",
    "https://ai.mongodb.com/v1" if VOYAGE_API_KEY.startswith("al-") else "https://api.voyageai.com/v1",
)
VOYAGE_MODEL = read.text(env, "VOYAGE_MODEL", "voyage-4")
VOYAGE_DIMENSIONS = read.integer(env, "VOYAGE_DIMENSIONS", 1024)
read.check_voyage_dimensions(VOYAGE_MODEL, VOYAGE_DIMENSIONS)
OPENAI_EMBEDDINGS_BASE_URL = read.url(env, "OPENAI_EMBEDDINGS_BASE_URL")
OPENAI_EMBEDDINGS_API_KEY = read.text(env, "OPENAI_EMBEDDINGS_API_KEY")
OPENAI_EMBEDDINGS_MODEL = read.text(env, "OPENAI_EMBEDDINGS_MODEL")
OPENAI_EMBEDDINGS_DIMENSIONS = read.integer(env, "OPENAI_EMBEDDINGS_DIMENSIONS", 1024, maximum=4_000)
# As they stand, blanks included: "query: " and "passage: " for models of the e5 kind.
OPENAI_EMBEDDINGS_QUERY_PREFIX = env.str("OPENAI_EMBEDDINGS_QUERY_PREFIX", default="")
OPENAI_EMBEDDINGS_DOCUMENT_PREFIX = env.str("OPENAI_EMBEDDINGS_DOCUMENT_PREFIX", default="")
if EMBEDDING_PROVIDER == "openai":
    for name, value in (("BASE_URL", OPENAI_EMBEDDINGS_BASE_URL), ("MODEL", OPENAI_EMBEDDINGS_MODEL)):
        if not value:
            raise ConfigurationError(
                f"OPENAI_EMBEDDINGS_{name} is not set, which EMBEDDING_PROVIDER=openai needs:"
                " set it to what your embedding server offers."
            )
EMBED_TIMEOUT_SECONDS = read.seconds(env, "EMBED_TIMEOUT_SECONDS", 30)
EMBED_POLL_SECONDS = read.seconds(env, "EMBED_POLL_SECONDS", 5)
EMBED_BATCH_SIZE = read.integer(env, "EMBED_BATCH_SIZE", 128, maximum=1_000)
EMBED_CONCURRENCY = read.integer(env, "EMBED_CONCURRENCY", 4, maximum=32)
EMBED_THREADS = read.integer(env, "EMBED_THREADS", 1, maximum=256)
SEARCH_MAX_LIMIT = read.integer(env, "SEARCH_MAX_LIMIT", 20, maximum=200)
SEARCH_LIMIT = read.integer(env, "SEARCH_LIMIT", min(5, SEARCH_MAX_LIMIT), maximum=SEARCH_MAX_LIMIT)
INCIDENT_TICKETS = read.integer(env, "INCIDENT_TICKETS", 5, minimum=2, maximum=100)
INCIDENT_WINDOW_MINUTES = read.integer(env, "INCIDENT_WINDOW_MINUTES", 60, maximum=1_440)
