"""Listeners on ports of this machine: what is said to them byte by byte, and what they heard."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Heard:
    """What reached a listener.

    Attributes:
        port: its port.
        requests: each request's head, as it came.
    """

    port: int
    requests: list[bytes] = field(default_factory=list)


Served = Callable[[socket.socket, bytes], None]
"""Answers one request, given the connection and the request's head."""


@contextmanager
def listening(served: Served, *, wrap: Callable[[socket.socket], socket.socket] | None = None):
    """Serve connections, one request each, until the block ends.

    Args:
        served: answers a request.
        wrap: makes a plain connection one of TLS.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = Heard(port=server.getsockname()[1])
        stopped = threading.Event()

        def accept() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        def one(plain: socket.socket) -> None:
            try:
                with wrap(plain) if wrap else plain as connection:
                    head = read_head(connection)
                    heard.requests.append(head)
                    served(connection, head)
            except OSError:  # the client went away, which is what is tested
                plain.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            stopped.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def read_head(connection: socket.socket) -> bytes:
    """Read a request up to its blank line."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            break
        head += piece
    return head


def whole(
    body: bytes, *, status: str = "200 OK", headers: Mapping[str, str] | None = None
) -> bytes:
    """Return an answer that ends its connection."""
    named = {"content-length": len(body), "connection": "close", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def dripping(pieces: Iterator[bytes], *, every: float = 0.01, most: int = 800) -> Served:
    """Return an answer that comes in pieces, a pause between, for some seconds at most."""

    def served(connection: socket.socket, head: bytes) -> None:
        pause = threading.Event()
        for _, piece in zip(range(most), pieces, strict=False):
            connection.sendall(piece)
            pause.wait(every)

    return served
