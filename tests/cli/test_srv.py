# SPDX-License-Identifier: Apache-2.0
"""What a forged or slow reply of DNS can change, also with mongodb+srv. The program runs in a network
namespace of its own, in which this file, run as a program, answers its queries."""
import contextlib
import fcntl
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

HOST, DOMAIN, PORT, SILENT_PORT = "127.0.0.1", "c.example.net", 27000, 27001
SRV, TXT, ADDRESS = 33, 16, 1      # types of records
TLS_HANDSHAKE = 0x16               # the first byte of a TLS connection
ADDRESSES, LATE_SECONDS = 600, 0.07


def encoded(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def reply(query, hosts, options):
    """The reply to a query about the domain: one server with the first of these names (with the next one, if the
    query is repeated), and options in a TXT record. The host "many" has hundreds of addresses; names "late..." are
    resolved slowly, and those with a 0 do not exist."""
    end = query.index(0, 12)
    kind, = struct.unpack_from(">H", query, end + 1)
    count = ADDRESSES if query[13:].startswith(b"many") else 1
    host = hosts.pop(0) if kind == SRV and len(hosts) > 1 else hosts[0]
    data = {SRV: [struct.pack(">HHH", 0, 0, PORT if host[:4] != "zero" else 0) + encoded(host)],
            ADDRESS: [bytes([127, n >> 8, n & 255, 1]) for n in range(count)],
            TXT: [bytes([len(options)]) + options.encode()] if options else []}.get(kind, [])
    if query[13:].startswith(b"late"):
        time.sleep(LATE_SECONDS * (kind == ADDRESS))
        data = [] if query[17:18] == b"0" else data
    records = b"".join(struct.pack(">HHHIH", 0xc00c, kind, 1, 60, len(each)) + each for each in data)
    return query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(data), 0, 0) + query[12:end + 5] + records


def serve(hosts, options, seen, folder):
    names, server, *clients = socket.socket(type=socket.SOCK_DGRAM), *(socket.socket() for _ in range(4))
    certificate, local = os.path.join(folder, "ca", "server.pem"), socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, "s.example.net"))
    local.bind(os.path.join(folder, "s.example.net"))
    local.listen()
    names.bind((HOST, 53))
    server.bind((HOST, PORT))
    server.listen()

    full = socket.create_server(("0.0.0.0", SILENT_PORT), backlog=0)
    for each in clients:    # more than the queue has room for: no other connection is made
        each.setblocking(False)
        each.connect_ex(full.getsockname())

    def answer():
        while True:
            query, sender = names.recvfrom(4096)
            if query[13:].startswith(b"late"):
                seen.append(query[13:13 + query[12]].decode())
            names.sendto(reply(query, hosts, options), sender)

    def accept_local():
        local.accept()
        seen.append("a socket of this machine")

    def accept():
        while True:
            connection, _ = server.accept()
            seen.append(connection.recv(1, socket.MSG_PEEK)[0])
            if seen[-1] == TLS_HANDSHAKE and os.path.exists(certificate):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                with contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True)
            elif seen[-1] != TLS_HANDSHAKE:
                connection.sendall(struct.pack("<iiii", 16, 0, 0, 2013))    # as if a MongoDB server answered
            connection.close()
    for work in (answer, accept, accept_local):
        threading.Thread(target=work, daemon=True).start()
    return full, clients


def inside(folder, host, options, *command):
    """Runs the command in the namespaces; prints its outcome, and the first bytes of its connections with
    the late names that it resolved."""
    with socket.socket() as any_socket:     # the loopback device is down in a new namespace
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1))     # SIOCSIFFLAGS, IFF_UP
    path, seen = os.path.join(folder, "resolv.conf"), []
    with open(path, "w", encoding="ascii") as file:
        file.write(f"nameserver {HOST}\n")
    subprocess.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)
    kept_open = serve(host.split(" "), options, seen, folder)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    del kept_open
    print(json.dumps([done.returncode, done.stderr, seen]))


if __name__ == "__main__":
    inside(*sys.argv[1:])
    sys.exit()

import secure_servers  # pylint: disable=wrong-import-position
import support  # pylint: disable=wrong-import-position


class Srv(support.Case):
    def connect(self, host="", options="", uri_options="", uri=f"mongodb+srv://ann:c4nary@{DOMAIN}/"):
        """(exit code, standard error, first bytes of the connections and late names) of a program that connects."""
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("only root can make the namespaces, with unshare")
        done = subprocess.run(
            ["unshare", "-m", "-n", sys.executable, __file__, self.scratch, host, options,
             support.program("shardquery"), "run", "-d", "x", "-c", "y", "--uri",
             f"{uri}?serverSelectionTimeoutMS=1000{uri_options}", "mot"],
            capture_output=True, text=True, check=False, timeout=support.LIMIT,
            env=support.clean_environment())
        if done.returncode != 0:
            self.skipTest(f"the namespaces cannot be made: {done.stderr}")
        self.assertNotIn("c4nary", done.stdout)
        return json.loads(done.stdout)

    def test_dns_cannot_turn_tls_off_or_name_other_servers(self):
        """The message names DNS, and the exit code says that the options of the user are not the cause."""
        for host, option, said in (
                ("a", "tls=false", "prohibited in TXT record"), ("a", "abc", "of DNS for c.example.net"),
                ("a", "authSource=x&tlsInsecure=true", "prohibited in TXT record"),
                ("a", "authMechanism=PLAIN", "prohibited in TXT record"), ("zero", "", "of DNS for c.example.net"),
                ("a.example.org", "", "must be subdomain"), ("/tmp/x.sock", "", "not HOST:PORT"),
                ("a/?tls=false&x=", "", "not HOST:PORT")):
            with self.subTest(host=host, option=option):
                code, message, seen = self.connect(host if host.endswith("org") else f"{host}.example.net", option)
                self.assertEqual((code, seen), (support.EXIT_CLUSTER, []), message)
                self.assertIn(said, message)
                self.assertIn("DNS", message)

    def test_dns_that_is_asked_again_cannot_name_a_socket(self):
        """The driver asks again, after the check of the first reply."""
        code, message, seen = self.connect(f"a.example.net {self.scratch}/s.example.net", uri_options="&tls=false")
        self.assertEqual((code, "s.example.net" in message), (support.EXIT_CLUSTER, True), message)
        self.assertNotIn("a socket of this machine", seen)

    def test_tls_is_used_unless_the_user_turns_it_off(self):
        code, message, seen = self.connect("a.example.net", "authSource=x")
        self.assertEqual((code, set(seen)), (support.EXIT_CLUSTER, {TLS_HANDSHAKE}), message)
        code, message, seen = self.connect("a.example.net", uri_options="&tls=false")
        self.assertEqual((code, TLS_HANDSHAKE in seen), (support.EXIT_CLUSTER, False), message)
        self.assertTrue(seen)

    def test_a_certificate_that_is_not_trusted(self):
        """It is named at once, as for mongodb://; the driver said that the server refuses connections."""
        secure_servers.need_openssl()
        secure_servers.Authority(self.scratch / "ca", "Own").issue("server", "/CN=a.example.net", "DNS:a.example.net")
        code, message, _ = self.connect("a.example.net")
        self.assertEqual((code, "authority" in message), (support.EXIT_CLUSTER, True), message)

    def test_the_addresses_of_a_name_share_the_time_to_connect(self):
        """Each one took a second."""
        code, message, _ = self.connect(uri=f"mongodb://many.example.net:{SILENT_PORT}/")
        self.assertEqual((code, "no connection within 1 s" in message), (support.EXIT_CLUSTER, True), message)

    def test_names_that_are_resolved_slowly_are_not_all_resolved(self):
        """The time is limited as if the servers were silent, also if they answer: 64 times connectTimeoutMS."""
        for exists in (0, 1):
            hosts = ",".join([f"{HOST}:{PORT}", *(f"late{exists}{n}.example.net:{PORT}" for n in range(300))])
            code, message, seen = self.connect(uri=f"mongodb://{hosts}/",
                                               uri_options="&replicaSet=r&connectTimeoutMS=100")
            self.assertEqual(code, support.EXIT_CLUSTER, message)
            self.assertIn(len({each for each in seen if isinstance(each, str)}), range(8, 150), message)
