"""Options name the hosts and addresses that pictures may come from."""

import ipaddress

import msgspec
import pytest

from ouzel.config import MediaConfig
from ouzel.config.media_hosts import InvalidHost, normal_host, read_media_hosts
from ouzel.errors import InvalidRequest
from ouzel.outbound.addresses import is_own, is_public
from ouzel.outbound.hosts import check_host, checked_addresses, read_target

NONE_PUBLIC = r"^field must be of a host with public addresses, and 'a.org' has none$"
PUBLIC = [
    *(
        "8.8.8.8",
        "1.1.1.1",
        "93.184.216.34",
        "172.15.255.255",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
    ),
    *(
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "169.253.0.1",
        "11.0.0.0",
        "126.255.255.255",
    ),
    *(
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ),
]
NOT_PUBLIC = [
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.1.2.3",
    ),
    *(
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
    ),
    *(
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
    ),
    *("255.255.255.255", "168.63.129.16", "100.100.100.200"),
    *(
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
    ),
    *(
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00::1",
    ),
    *(
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "::ffff:0:127.0.0.1",
        "2001:20::1",
        "4000::1",
    ),
]


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_of_other_peoples_servers_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_of_anything_else_is_not(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


def test_an_address_of_this_machine_is_its_own() -> None:
    assert is_own(ipaddress.ip_address("127.0.0.1"))
    assert not is_own(ipaddress.ip_address("192.0.2.1"))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Images.Example.ORG", "images.example.org"),
        ("images.example.org.", "images.example.org"),
        ("my_minio", "my_minio"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ.org", "example.org"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[2606:4700:0:0::1111]", "2606:4700::1111"),
    ],
)
def test_a_host_has_one_spelling(text: str, normal: str) -> None:
    assert normal_host(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "a..b",
            "-a.org",
            "a-.org",
            "a b",
            "a/b",
            "a\\b",
            "a@b",
            "a:b",
            "*",
            "*.example.org",
            "a\0b",
            "a\nb",
        ),
        *(
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.1.1.1",
            "a.1",
        ),
        *(
            "example.0x1",
            "１２７.１",
            "x" * 64,
            "x." * 127 + "xx",
            "ab.\u2024",
            "\u2488.example",
            "[::1",
            "::1%lo",
            "fe80::1%1",
        ),
    ],
)
def test_urls_without_a_host_are_refused(text: str) -> None:
    with pytest.raises(InvalidHost):
        normal_host(text)


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        (("images.example.org",), "http://images.example.org/x.png"),
        (("images.example.org",), "https://IMAGES.example.org./x.png"),
        (("images.example.org",), "https://images.example.org:443/x.png"),
        (("IMAGES.example.org.",), "https://images.example.org/x.png"),
        (("bücher.example",), "https://xn--bcher-kva.example/x.png"),
        (("images.example.org:8443",), "https://images.example.org:8443/x.png"),
        (("images.example.org:443",), "https://images.example.org/x.png"),
        (("a.org", "b.org"), "https://b.org"),
        (("all",), "https://b.org"),
        (("all",), "http://8.8.8.8/x"),
        (("10.1.2.3",), "http://10.1.2.3/x"),
        (("10.1.2.3:9000",), "http://10.1.2.3:9000/x"),
        (("10.1.0.0/16",), "http://10.1.2.3/x"),
        (("::1",), "http://[::1]/x"),
        (("[::1]",), "http://[0:0:0:0:0:0:0:1]/x"),
        (("[::1]:9000",), "http://[::1]:9000/x"),
        (("localhost",), "http://localhost/x"),
        (("all", "localhost:9000"), "http://localhost:9000/x"),
    ],
)
def test_a_host_that_the_options_name_may_be_asked(entries: tuple[str, ...], url: str) -> None:
    check_host(read_target(url, "field"), read_media_hosts(entries), "field")


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        ((), "https://images.example.org/x.png"),
        (("images.example.org",), "https://example.org/x.png"),
        (("images.example.org",), "https://evil-images.example.org/x.png"),
        (("images.example.org",), "https://images.example.org.evil.org/x.png"),
        (("images.example.org",), "https://a.images.example.org/x.png"),
        (("images.example.org",), "https://images.example.org:8443/x.png"),
        (("images.example.org",), "http://images.example.org:443/x.png"),
        (("images.example.org:8443",), "https://images.example.org/x.png"),
        (("all",), "https://images.example.org:8443/x.png"),
        (("10.1.2.3:9000",), "http://10.1.2.3/x"),
        (("10.1.0.0/16",), "http://10.2.2.3/x"),
        (("10.1.0.0/16",), "http://10.1.2.3:9000/x"),
        (("127.0.0.1",), "http://[::ffff:127.0.0.1]/x"),
        (("all.example.org",), "http://all/x"),
    ],
)
def test_a_host_that_the_options_do_not_name_may_not(entries: tuple[str, ...], url: str) -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"^field must be of a host in the server's allowed_media_domains, given '",
    ):
        check_host(read_target(url, "field"), read_media_hosts(entries), "field")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("https://a.org", "'https://a.org' is no network"),
        (
            "*.a.org",
            (
                r"'\*\.a\.org' is neither a name nor an address .* without a scheme, "
                r"a path and wildcards"
            ),
        ),
        ("a.org:x", "'a.org:x' has no port between 1 and 65535"),
        ("a.org:0", "'a.org:0' has no port between 1 and 65535"),
        ("a.org:65536", "'a.org:65536' has no port between 1 and 65535"),
        ("10.1.2.3/16", "'10.1.2.3/16' is no network of addresses, like 10.1.0.0/16: .*host bits"),
        ("", "'' is neither"),
    ],
)
def test_an_entry_that_names_nothing_is_refused(entry: str, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert({"allowed_media_domains": [entry]}, MediaConfig)


async def addresses(entries: tuple[str, ...], url: str, *found: str) -> list[str]:
    async def resolve(host: str, port: int) -> list[str]:
        return list(found)

    return await checked_addresses(
        read_target(url, "field"), read_media_hosts(entries), resolve, "field"
    )


async def test_a_name_with_public_addresses_may_be_connected_to() -> None:
    assert await addresses(("a.org",), "http://a.org", "192.0.1.1", "2a00:1450::1") == [
        "192.0.1.1",
        "2a00:1450::1",
    ]


@pytest.mark.parametrize("address", NOT_PUBLIC)
@pytest.mark.parametrize("entry", ["a.org", "all"])
async def test_a_name_may_not_lead_to_an_address_that_is_not_public(
    address: str, entry: str
) -> None:
    for found in ([address], ["192.0.1.1", address], [address, "192.0.1.1"]):
        with pytest.raises(
            InvalidRequest,
            match=r"^field must be of a host with public addresses, and 'a.org' has none$",
        ):
            await addresses((entry,), "http://a.org", *found)


@pytest.mark.parametrize("found", [[], ["fe80::1%1"], ["nothing"], [""]])
async def test_a_name_without_addresses_gets_the_same_answer(found: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=NONE_PUBLIC):
        await addresses(("a.org",), "http://a.org", *found)


@pytest.mark.parametrize(
    ("entries", "url", "address"),
    [
        (("minio:9000", "10.1.2.3:9000"), "http://minio:9000", "10.1.2.3"),
        (("minio", "10.1.0.0/16"), "http://minio", "10.1.2.3"),
        (("localhost:9000",), "http://localhost:9000", "127.0.0.1"),
        (("localhost",), "http://localhost", "::1"),
        (("localhost",), "http://127.0.0.1", "127.0.0.1"),
    ],
)
async def test_an_address_that_is_not_public_may_be_named(
    entries: tuple[str, ...], url: str, address: str
) -> None:
    assert await addresses(entries, url, address) == [address]


@pytest.mark.parametrize(
    ("entries", "url", "address"),
    [
        (("all", "10.1.2.3:9000"), "http://evil.org", "10.1.2.3"),
        (("minio:9000", "10.1.2.3"), "http://minio:9000", "10.1.2.3"),
        (("minio", "10.1.0.0/16"), "http://minio", "10.2.0.1"),
        (("minio", "localhost"), "http://minio", "10.1.2.3"),
        (("localhost",), "http://localhost", "10.1.2.3"),
        (("a.org", "127.0.0.1"), "http://a.org", "::ffff:127.0.0.1"),
    ],
)
async def test_naming_one_address_names_no_other(
    entries: tuple[str, ...], url: str, address: str
) -> None:
    with pytest.raises(InvalidRequest, match="must be of a host with public addresses"):
        await addresses(entries, url, address)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://", "'' is neither a name nor an address of a host"),
        ("http:/a.org/x", "'' is neither"),
        ("http:a.org", "'' is neither"),
        ("http://user@a.org/", "without a user name"),
        ("http://user:secret@a.org/", "without a user name"),
        ("http://@a.org/", "without a user name"),
        ("http://a.org@127.0.0.1/", "without a user name"),
        ("http://127.0.0.1\\@a.org/", "without spaces, control characters and backslashes"),
        ("http://a.org\t.evil.org/", "without spaces"),
        ("http://a.org/x\r\nHost: b", "without spaces"),
        ("http://a.org/x y", "without spaces"),
        ("http://a.org/\ud800", "without spaces"),
        ("http://a.org:x/", "must be a valid URL"),
        ("http://a.org:99999/", "must be a valid URL"),
        ("http://a.org:0/", "with a port between 1 and 65535"),
        ("http://a.org:/", "with a port between 1 and 65535"),
        ("http://[::1/", "must be a valid URL"),
        ("http://[fe80::1%25lo]/", "is neither a name nor an address"),
        ("http://[v1.x]/", "is neither"),
        ("http://2130706433/", "'2130706433' is neither"),
        ("http://0x7f000001/", "'0x7f000001' is neither"),
        ("http://017700000001/", "'017700000001' is neither"),
        ("http://127.1/", "'127.1' is neither"),
        ("http://0177.0.0.1/", "'0177.0.0.1' is neither"),
        ("http://a.org%2f.evil.org/", "is neither"),
        ("http://a%00.org/", "is neither"),
        ("http://" + "x" * 8192, "must be a URL of <= 8192 characters, given 8199"),
    ],
)
def test_a_url_that_names_no_host_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^field .*(?:{message})"):
        read_target(url, "field")


def test_the_requested_path_is_the_path_of_the_url() -> None:
    target = read_target("http://A.org:8080/ü/%20?b=[c]&d='e'<>#fragment", "field")

    assert target.path == "/%C3%BC/%20?b=[c]&d='e'%3C%3E"
    assert (target.host_header, target.has_usual_port) == ("a.org:8080", False)
    assert read_target("https://[::1]?x", "field").path == "/?x"
    assert read_target("https://[::1]:8443", "field").host_header == "[::1]:8443"
