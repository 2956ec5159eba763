"""Limits searches and pages to domains of the web."""

from collections.abc import Iterable
from dataclasses import dataclass

from ouzel.config.media_hosts import normal_host
from ouzel.errors import InvalidRequest
from ouzel.outbound.hosts import read_target

_WEB = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Domains:
    """Lists domains in the normal form of hosts; each has all its subdomains."""

    allowed: tuple[str, ...] = ()  # empty: all domains
    blocked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.blocked)

    def permit(self, url: str) -> bool:
        """Tells whether the URL is a web address within the domains."""
        if not url.startswith(_WEB):
            return False
        try:
            host = read_target(url, "the URL").host
        except InvalidRequest:
            return False
        is_allowed = not self.allowed or _is_within(host, self.allowed)
        return is_allowed and not _is_within(host, self.blocked)

    def describe(self) -> str:
        """Returns the limit as the end of the sentence "the URL must be …"."""
        parts = []
        if self.allowed:
            parts.append(f"of a domain of {', '.join(self.allowed)}")
        if self.blocked:
            parts.append(f"of no domain of {', '.join(self.blocked)}")
        return " and ".join(parts) or "of any domain"


EVERY_DOMAIN = Domains()


def read_domains(allowed: Iterable[str], blocked: Iterable[str] = ()) -> Domains:
    """Reads domains as clients write them, also with a scheme, a path and `www.`.

    Raises InvalidHost for a text that is not a domain.
    """
    return Domains(tuple(map(read_domain, allowed)), tuple(map(read_domain, blocked)))


def read_domain(text: str) -> str:
    """Returns the normal form of a domain. Raises InvalidHost."""
    bare = text.partition("://")[2] if "://" in text else text
    return normal_host(bare.partition("/")[0]).removeprefix("www.")


def _is_within(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
