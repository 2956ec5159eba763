"""Records of `ouzel launch`: the server and model that a client uses, and a client's settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ouzel.errors import OuzelError

KEY_VARIABLE = "OPENAI_API_KEY"  # also holds the key for `ouzel chat --url`
NO_KEY = "none"  # clients want a key, also for a server without keys
_MAX_OUTPUT_TOKENS = 4096
_OUTPUT_SHARE = 4  # an answer gets at most this part of a short context


class LaunchError(OuzelError):
    """The client cannot be started."""


@dataclass(frozen=True, slots=True)
class Target:
    root: str  # address of the server, without /v1
    model: str
    context: int  # tokens
    api_key: str = ""
    codex_catalogue: str = ""  # JSON; empty if the server has none

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    @property
    def max_output_tokens(self) -> int:
        """Returns the part of the context for one answer."""
        return min(_MAX_OUTPUT_TOKENS, self.context // _OUTPUT_SHARE)

    @property
    def key(self) -> str:
        return self.api_key or NO_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a client for one target. Keys of servers are in variables, never in files."""

    files: Mapping[str, str]  # name in the client's directory -> text
    variables: Mapping[str, str]
    # variables of the user that would send the client, or another server's key, elsewhere
    removed_variables: tuple[str, ...] = ()
    arguments: tuple[str, ...] = field(default=())  # before the user's own arguments


@dataclass(frozen=True, slots=True)
class Client:
    title: str
    program: str
    installation: str  # the documented command that installs the program
    prepare: Callable[[Target, Path], Setup]  # the path is the client's directory
