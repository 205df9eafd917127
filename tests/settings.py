"""Settings of the test run: nothing from the developer's environment, no .env file, no key."""

import os

TEST_ENVIRONMENT = {
    "ENV_FILE": "",
    "DEBUG": "off",
    "TRIAL": "off",
    "SECRET_KEY": "only-for-tests",
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
    "ASSISTANT_BACKEND": "claude",
    "ANTHROPIC_API_KEY": "sk-ant-test",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "EMBEDDING_PROVIDER": "local",
    "VOYAGE_API_KEY": "placeholder",
    "COOKIES_OVER_HTTPS_ONLY": "off",
    "LOG_LEVEL": "WARNING",
}
OURS = (
    "ASSISTANT_",
    "ANTHROPIC_",
    "EMBED",
    "VOYAGE_",
    "OPENAI_",
    "SEARCH_",
    "INCIDENT_",
    "REHEARSAL_",
    "CSRF_TRUSTED",
    "TIME_ZONE",
    "LOGIN_",
    "TRUSTED_PROXIES",
    "HSTS_",
    "SESSION_",
    "METRICS_",
    "OIDC_",
)
for name in [name for name in os.environ if name.startswith(OURS)]:
    del os.environ[name]
os.environ.update(TEST_ENVIRONMENT)

from helpdesk.settings import *  # noqa: E402, F403
from helpdesk.settings import DATABASES, STORAGES  # noqa: E402

# One database a run, so that runs beside each other do not collide; xdist adds its worker's name.
DATABASES["default"]["TEST"] = {"NAME": os.environ.get("TEST_DB_NAME", "test_helpdesk")}
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
