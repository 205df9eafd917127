// Tells the server in which time zone this browser is, so that pages show its dates. Kept in this cookie alone.
(() => {
  "use strict";
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes("timezone=" + zone)) {
    document.cookie = "timezone=" + zone + "; path=/; max-age=31536000; samesite=lax";
  }
})();
