"""Defines the options of tools that this server runs for its clients."""

from typing import Annotated, Any, ClassVar, Literal  # Any: `serve` checks the values

import msgspec
from msgspec import Meta

from ouzel.config.media_hosts import read_media_hosts
from ouzel.config.option import option


class HostedToolsConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Tools that the server runs"

    allowed_mcp_hosts: Annotated[
        tuple[str, ...],
        option(
            "A host, or HOST:PORT, whose MCP servers clients may name; all: every public host. "
            "Addresses that are not public need an entry of their own: an address, a network like "
            "10.1.0.0/16, or localhost.",
            unset="none: clients may name the servers of --mcp-servers only",
        ),
    ] = ()
    mcp_servers: Annotated[
        tuple[str | dict[str, Any], ...],
        option(
            "An MCP server that clients may name by its label: LABEL=URL. In the file also a "
            "mapping with `label`, and `url` and `headers`, or `command`, `args`, `env` and `cwd` "
            "of a program that this server starts.",
            unset="none",
            is_secret=True,
        ),
    ] = ()
    max_mcp_programs: Annotated[
        int,
        Meta(ge=1, le=4096),
        option("Most programs of --mcp-servers at the same time."),
    ] = 16
    mcp_program_idle_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option("Seconds that such a program waits for another response of its API key."),
    ] = 60.0
    mcp_list_age_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option("Seconds for which a list of MCP tools is used again."),
    ] = 300.0
    web_search_provider: Annotated[
        Literal["none", "searxng", "brave", "tavily", "ddgs"],
        option("Search engine of the tool web_search; searxng is the default with a URL."),
    ] = "none"
    web_search_url: Annotated[
        str,
        option(
            "Address of a SearXNG instance, which must allow the format json; or another address "
            "of the other engines.",
            unset="none",
        ),
    ] = ""
    web_search_key: Annotated[
        str,
        Meta(pattern=r"^[!-~]*$"),
        option(
            "Key of the search engine. Other users of the machine can read flags: prefer "
            "OUZEL_WEB_SEARCH_KEY.",
            unset="none",
            is_secret=True,
        ),
    ] = ""
    web_fetch_hosts: Annotated[
        tuple[str, ...],
        option(
            "A host whose pages the model may open with web_search, written as for "
            "--allowed-mcp-hosts; an empty text opens none."
        ),
    ] = ("all",)
    embedding_model: Annotated[
        str,
        option(
            "Name of the served model that makes the vectors of new vector stores.",
            unset="the first model for embeddings",
        ),
    ] = ""
    # The sandbox of code_interpreter and shell
    sandbox: Annotated[
        Literal["none", "bubblewrap", "gvisor"],
        option(
            "Sandbox in which the model may run code, for the tools code_interpreter and shell; "
            "none turns them off. bubblewrap needs the program bwrap and user namespaces; gvisor "
            "needs runsc too, and gives the code a kernel of its own, which is slower."
        ),
    ] = "none"
    sandbox_root: Annotated[
        str,
        option(
            "A directory with a Linux system that the sandbox shows, such as an unpacked "
            "image with Python and its libraries.",
            unset="the programs and libraries of this machine: /usr, /bin, /lib and few files of "
            "/etc",
        ),
    ] = ""
    sandbox_python: Annotated[
        str,
        option(
            "Path of the Python 3.9 or newer that the sandbox uses, such as an environment with "
            "numpy, pandas and matplotlib. Everybody must be able to read it.",
            unset="python3 of the system inside",
        ),
    ] = ""
    sandbox_cgroup: Annotated[
        str,
        option(
            "A cgroup of version 2 without processes that belongs to the server's user. Each "
            "container gets a cgroup below it, which holds memory and processes exactly.",
            unset="none: each process has limits, and the server measures a container",
        ),
    ] = ""
    sandbox_max_containers: Annotated[
        int, Meta(ge=1, le=1024), option("Most containers at the same time.")
    ] = 8
    sandbox_max_per_key: Annotated[
        int, Meta(ge=1, le=1024), option("Most containers of one API key at the same time.")
    ] = 4
    sandbox_idle_minutes: Annotated[
        float,
        Meta(gt=0, le=1440),
        option("Minutes without a call after which a container ends, with its files."),
    ] = 20.0
    sandbox_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Longest time of one call in a container; it must be below --tool-call-timeout-s."),
    ] = 30.0
    sandbox_cpu_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Most processor time of one call, of all its processes together."),
    ] = 60.0
    sandbox_memory_mib: Annotated[
        int,
        Meta(ge=64, le=2**20),
        option("Most memory of a container in MiB; a request may ask for less (memory_limit)."),
    ] = 1024
    sandbox_files_mib: Annotated[
        int,
        Meta(ge=1, le=2**20),
        option("Size of a container's work directory in MiB; the files are in memory."),
    ] = 256
    sandbox_max_processes: Annotated[
        int, Meta(ge=8, le=4096), option("Most processes and threads in a container.")
    ] = 128
    sandbox_output_kib: Annotated[
        int, Meta(ge=1, le=1024), option("Longest output of one call in KiB; the rest is left out.")
    ] = 64
    chat_tools: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(requested|web_search|mcp:[A-Za-z0-9_-]+)$")], ...],
        option(
            "A tool that the server runs in chat completions: web_search, or mcp:LABEL for a "
            "server of --mcp-servers, in every chat; requested: the tools of the types mcp and "
            "web_search in a request.",
            unset="none: chat completions call tools of the client only",
        ),
    ] = ()
    max_tool_calls: Annotated[
        int,
        Meta(ge=1, le=10_000),
        option("Most calls of such tools in one response; a request may ask for fewer."),
    ] = 128
    tool_call_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time of one call.")
    ] = 60.0
    max_tool_output_chars: Annotated[
        int,
        Meta(ge=1000, le=2**24),
        option("Longest text of one call that the model reads; the rest is left out."),
    ] = 100_000

    def __post_init__(self) -> None:
        if self.allowed_mcp_hosts:
            read_media_hosts(self.allowed_mcp_hosts)
        read_media_hosts(self.fetch_hosts)
        if self.sandbox != "none" and self.sandbox_timeout_s >= self.tool_call_timeout_s:
            raise ValueError(
                f"sandbox_timeout_s must be < tool_call_timeout_s ({self.tool_call_timeout_s:g}), "
                f"given {self.sandbox_timeout_s:g}"
            )

    @property
    def fetch_hosts(self) -> tuple[str, ...]:
        """Returns the hosts whose pages the model may open; empty: none."""
        return tuple(host for host in self.web_fetch_hosts if host)

    @property
    def search_provider(self) -> str:
        """Returns the name of the search engine; "none" if searches are off."""
        if self.web_search_provider == "none" and self.web_search_url:
            return "searxng"
        return self.web_search_provider
