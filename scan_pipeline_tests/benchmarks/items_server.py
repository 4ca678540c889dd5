"""Items behind an opaque cursor, in the shape of the benchmark's API: for trying the scripts out.

    python -m scan_pipeline_tests.benchmarks.items_server [NUMBER] [PORT]

Prints its address. A body is made when it is first asked for, so that a second run over the same
server measures the client alone.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 1000


def item(n: int) -> bytes:
    """Return the n-th item, about 320 bytes of JSON."""
    note = "null" if n % 3 else f'"call back about order {n * 7919 % 100_000}"'
    return (
        f'{{"id":"rec_{n * 2654435761 % 2**32:016x}","seq":{n},"account_id":{n * 7919 % 10**7},'
        f'"amount":{n * 37 % 500_000 / 100},"score":{n * 7907 % 10**6 / 10**6},'
        f'"status":"{("active", "closed", "pending")[n % 3]}","name":"customer {n % 50_000}",'
        f'"active":{"true" if n % 2 else "false"},"created_at":"2024-01-{n % 28 + 1:02}T00:56:12Z",'
        f'"updated_at":"2024-02-{n % 28 + 1:02}T18:00:01Z","note":{note},'
        f'"attrs":{{"city":"Amsterdam","zip":"{n % 90_000 + 10_000}",'
        f'"lat":{n * 13 % 180_000 / 1000 - 90},"lon":{n * 17 % 360_000 / 1000 - 180}}}}}'
    ).encode()


@contextmanager
def serving(number: int, *, port: int = 0) -> Iterator[str]:
    """Serve so many items from a thread; yield the address of the collection."""

    @cache
    def body(start: int) -> bytes:
        stop = min(start + PAGE, number)
        items = b",".join(map(item, range(start, stop)))
        token = f'"c{stop}"' if stop < number else "null"
        tail = f'],"next_page_token":{token},"total_count":{number}}}'
        return b'{"items":[%b%b' % (items, tail.encode())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            cursor = parse_qs(urlsplit(self.path).query).get("cursor", ["c0"])[0]
            page = body(int(cursor[1:]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *arguments: Any) -> None:
            del arguments

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/items"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    wanted = [int(each) for each in sys.argv[1:3]]
    with serving(wanted[0] if wanted else 100_000, port=wanted[1] if wanted[1:] else 0) as address:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            Event().wait()
