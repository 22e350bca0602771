"""Asks a DNS server for a name's IPv4 address, without a resolver: dns_question.py SERVER NAME; prints the address."""

import socket
import struct
import sys

HEADER = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0)
A_IN_INTERNET = struct.pack(">2H", 1, 1)
TIMEOUT_S = 20


def ask(server: str, name: str) -> str:
    """Return the last answer's address; RFC 1035 puts its four bytes at the end."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(TIMEOUT_S)
        channel.sendto(HEADER + labels + b"\0" + A_IN_INTERNET, (server, 53))
        return socket.inet_ntoa(channel.recv(512)[-4:])


if __name__ == "__main__":
    print(ask(*sys.argv[1:]))
