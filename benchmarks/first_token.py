"""Compares the time to the first token of several servers, in turns.

    python -m benchmarks.first_token NAME=URL[,URL] NAME=URL ...

Clients (`-c` at a time) send chats of 16 tokens over connections that stay open. Several URLs of
one name are divided among the clients. Differences to the first server are taken within a round,
because the speed of a machine changes.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from urllib.parse import urlsplit

_WORDS = "and voles and mice " * 10
_PAUSE_S = 0.1  # longest pause between a client's requests


class Client:
    def __init__(self, url: str, number: int) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._address = (parts.hostname, parts.port or 80)
        text = f"{number}: tell me of owls {_WORDS}"
        fields = {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 16,
            "ignore_eos": True,
            "stream": True,
        }
        body = json.dumps(fields)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {parts.netloc}\r\n"
        head += "content-type: application/json\r\n"
        self._request = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()

    async def run(self, end_s: float) -> list[float]:
        """Sends requests until `end_s`, and returns their times."""
        times = []
        reader, writer = await asyncio.open_connection(*self._address)
        while time.perf_counter() < end_s:
            await asyncio.sleep(random.uniform(0, _PAUSE_S))
            times.append(await self._first_token_s(reader, writer))
        writer.close()
        return times

    async def _first_token_s(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> float:
        begun_s, first_s, answer = time.perf_counter(), 0.0, b""
        writer.write(self._request)
        while not answer.endswith(b"0\r\n\r\n"):
            piece = await reader.read(65536)
            assert piece, f"the connection ended: {answer[-200:]!r}"
            answer += piece
            if not first_s and answer.count(b'"content":"') - answer.count(b'"content":""') > 0:
                first_s = time.perf_counter() - begun_s
        assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
        return first_s


async def measure_times(url: str, num_clients: int, seconds: float) -> list[float]:
    end_s = time.perf_counter() + seconds
    urls = url.split(",")
    clients = [Client(urls[number % len(urls)], number) for number in range(num_clients)]
    found = await asyncio.gather(*(client.run(end_s) for client in clients))
    return sorted(each for times in found for each in times)


async def measure(servers: dict[str, str], num_clients: int, rounds: int, seconds: float) -> None:
    medians: dict[str, list[float]] = {name: [] for name in servers}
    for url in servers.values():
        await measure_times(url, num_clients, 1.0)
    for _ in range(rounds):
        for name, url in random.sample(list(servers.items()), len(servers)):
            medians[name].append(
                1000 * statistics.median(await measure_times(url, num_clients, seconds))
            )
    base, *others = servers
    print(
        f"{num_clients} clients, {rounds} rounds: {base} {statistics.median(medians[base]):.1f} ms"
    )
    for name in others:
        added = [each - of_base for each, of_base in zip(medians[name], medians[base], strict=True)]
        print(
            f"  {name} {statistics.median(added):+.1f} ms ({min(added):+.1f} to {max(added):+.1f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL")
    parser.add_argument("-c", "--clients", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    servers = {name: url for name, _, url in (text.partition("=") for text in arguments.servers)}
    for num_clients in arguments.clients or [1, 8, 32]:
        asyncio.run(measure(servers, num_clients, arguments.rounds, arguments.seconds))


if __name__ == "__main__":
    main()
