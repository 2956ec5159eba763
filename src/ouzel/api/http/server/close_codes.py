"""Defines the close codes of WebSockets (RFC 6455, section 7.4.1, and IANA's registry)."""

NORMAL_END = 1000
INVALID_TEXT = 1007
SERVER_FAILED = 1011
SERVER_STOPS = 1012  # "service restart": clients should connect anew
