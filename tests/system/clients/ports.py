"""Ports for programs that cannot say which one they were given."""

import random
import socket


def free_port():
    """A port that nobody has. Linux gives it to no other test meanwhile, since its own are from 32768 on."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
