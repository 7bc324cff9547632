"""The base protocol of LSP, for benchmarks that time a real server over stdio: one message read."""
import json
import sys
from typing import BinaryIO


def read(stream: BinaryIO) -> dict:
    """The next message; the benchmark ends when the server has."""
    length = 0
    while line := stream.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        sys.exit("the server ended")
    return json.loads(stream.read(length))
