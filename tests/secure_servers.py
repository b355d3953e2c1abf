# SPDX-License-Identifier: Apache-2.0
"""Certificates and servers for the tests of secure connections: a certificate authority, created with
the openssl program, and real servers that require TLS or users."""
import contextlib
import itertools
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import unittest

import servers
import support


def need_openssl():
    if not shutil.which("openssl"):
        raise unittest.SkipTest("the openssl program is not installed")


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Authority:
    """A certificate authority. A file NAME.pem holds a certificate and its key."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o700, parents=True)
        self.certificate = self.folder / "ca.pem"
        (self.folder / "index.txt").touch()
        (self.folder / "ca.conf").write_text(
            "[ca]\ndefault_ca = own\n[own]\n"
            f"database = {self.folder}/index.txt\nnew_certs_dir = {self.folder}\n"
            "default_md = sha256\npolicy = any\nrand_serial = yes\nunique_subject = no\n"
            "[any]\norganizationName = optional\ncommonName = supplied\n")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", 30, "-subj", f"/O={name}/CN={name}",
                "-keyout", self.folder / "ca.key", "-out", self.certificate)

    def issue(self, name, subject, alternative_names=None, expired=False, password=None):
        """Creates a key and its certificate in one file, and returns the path. `password` encrypts
        the key."""
        key, request, signed = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        hidden = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *hidden,
                "-subj", subject, "-keyout", key, "-out", request)
        when = ["-startdate", "20010101000000Z",
                "-enddate", "20020101000000Z"] if expired else ["-days", 30]
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName = {alternative_names}\n"
                              if alternative_names else "basicConstraints = CA:FALSE\n")
        openssl("ca", "-batch", "-notext", "-config", self.folder / "ca.conf", "-cert",
                self.certificate, "-keyfile", self.folder / "ca.key", *when,
                "-extfile", extensions, "-in", request, "-out", signed)
        both = self.folder / f"{name}.pem"
        both.write_bytes(signed.read_bytes() + key.read_bytes())
        return both


class Server(servers.Servers):
    """One mongod, or a replica set, started by tools/localcluster with these mongod options."""

    def __init__(self, folder, shape, options):
        super().__init__(folder, *shape, *(f"--mongod-option={option}" for option in options))
        self.hosts = self.uri.split("//")[1].split("/")[0]
        self.port = support.port_of(self.uri)


class Impostor:
    """A TLS server with a certificate with which mongod would not start. After the handshake it
    answers nothing. It stands before a `real` server: its first `relayed` connections go there."""

    def __init__(self, certificate, real=None, relayed=0):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

        def relay(source, sink):
            with contextlib.suppress(OSError), sink:
                while data := source.recv(65536):
                    sink.sendall(data)

        def serve():
            for count in itertools.count(1):
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    return
                if count <= relayed:
                    server = socket.create_connection(("127.0.0.1", real.port))
                    for ends in ((connection, server), (server, connection)):
                        threading.Thread(target=relay, args=ends, daemon=True).start()
                    continue
                try:
                    with context.wrap_socket(connection, server_side=True) as secured:
                        secured.recv(1)
                except OSError:
                    connection.close()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def folder_of_tests(case):
    """A folder for all tests of a class, removed after the last one."""
    import tempfile
    folder = tempfile.mkdtemp(prefix="shardload-secure-")
    case.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o700)
    return pathlib.Path(folder)


ROOT_PASSWORD = "for the tests alone"


def first_user(uri, **tls):
    """Creates the user root. A server with --auth and no users allows that from its own host."""
    with support.pymongo.MongoClient(uri, **tls) as client:
        client.admin.command("createUser", "root", pwd=ROOT_PASSWORD, roles=["root"])


def as_root(uri, **tls):
    return support.pymongo.MongoClient(uri, username="root", password=ROOT_PASSWORD, **tls)


def start_for_class(cls):
    """Starts a server with users for a test class: cls.server, and cls.root, a client as its first
    user."""
    folder = folder_of_tests(cls)
    cls.server = Server(folder / "server", ["--standalone", "--cache", "0.25"], ["--auth"])
    cls.addClassCleanup(cls.server.down)
    first_user(cls.server.uri)
    cls.root = as_root(cls.server.uri)
    cls.addClassCleanup(cls.root.close)
