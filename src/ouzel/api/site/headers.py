"""Lists the headers of answers for browsers: content policies, caching and variants."""

# The page loads nothing from elsewhere, has no inline script, and no other page may frame it. Its
# one policy of trusted types lets through the address of the service worker.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "frame-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types ouzel-worker",
    ]
)
# The page with another page that a model has written: an opaque origin without a network, whose
# scripts run. Only the playground may frame it.
_PREVIEW_POLICY = "; ".join(
    [
        "sandbox allow-scripts",
        "default-src 'none'",
        "script-src 'unsafe-inline'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "font-src data:",
        "media-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types default page",
    ]
)
# Only the page may ask for the microphone. The frame of a preview gets no device at all.
_PERMISSIONS = "camera=(), display-capture=(), geolocation=(), microphone=(self)"
_PREVIEW_PERMISSIONS = "camera=(), display-capture=(), geolocation=(), microphone=()"
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "permissions-policy": _PERMISSIONS,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
# Browsers apply the policy of a style or module only if it is opened as a page, where it needs
# nothing. A short one keeps the many files of the page small.
FILE_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
PAGE_HEADERS = HEADERS | {"vary": "accept, accept-language, cookie"}
PREVIEW_HEADERS = PAGE_HEADERS | {
    "content-security-policy": _PREVIEW_POLICY,
    "permissions-policy": _PREVIEW_PERMISSIONS,
    # A policy does not stop WebRTC nor early connections; Chromium stops them by this list.
    "connection-allowlist": "()",
    "x-dns-prefetch-control": "off",
}
BUILD_HEADER = "ouzel-build"  # tells the service worker which files belong together
