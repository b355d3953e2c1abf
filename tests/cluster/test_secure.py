# SPDX-License-Identifier: Apache-2.0
"""Users and TLS against real servers: each option for a password, each kind of refused connection, and
no secret in any output or file of the programs.

The tests show without a clock that an error is reported at once: the URIs allow ten minutes for
server selection, and the test's time limit kills a program that waits so long."""
import os
import pty
import signal
import stat
import subprocess
import termios
import urllib.parse

import secure_servers
import support
from secure_servers import Authority, Impostor, Server
from support import EXIT_CLUSTER, EXIT_OK, EXIT_USAGE

# Encoded or not, these passwords contain their first word, for which the tests search.
PASSWORD = "Xyzzy7:/@p%w?d&x=1 #"
KEY_PASSWORD = "Plugh8&=% open"
SECRETS = (b"Xyzzy7", b"Plugh8")
PATIENCE = "serverSelectionTimeoutMS=600000"
ALTERNATIVE = "DNS:localhost,IP:127.0.0.1"
CLIENTS = "/O=shardload clients/CN="


def encoded(text):
    return urllib.parse.quote(text, safe="")


class SecureCase(support.Case):
    """Two servers with users: one in clear text, one with TLS; certificates of two authorities."""

    @classmethod
    def setUpClass(cls):
        support.program("shardload")
        secure_servers.need_openssl()
        cls.folder = secure_servers.folder_of_tests(cls)
        cls.ours = Authority(cls.folder / "ours", "shardload tests")
        cls.theirs = Authority(cls.folder / "theirs", "strangers")
        server = cls.ours.issue("server", "/O=shardload servers/CN=localhost", ALTERNATIVE)
        cls.loader = cls.ours.issue("loader", CLIENTS + "loader")
        cls.tls_options = [f"--tlsCAFile={cls.ours.certificate}",
                           f"--tlsCertificateKeyFile={server}",
                           "--tlsAllowConnectionsWithoutCertificates"]
        cls.start_servers()

    @classmethod
    def start_servers(cls):
        shape = ["--standalone", "--cache", "0.25"]
        cls.plain = Server(cls.folder / "plain", shape, ["--auth"])
        cls.addClassCleanup(cls.plain.down)
        cls.tls = Server(cls.folder / "tls", shape, ["--auth", "--tlsMode=requireTLS", *cls.tls_options])
        cls.addClassCleanup(cls.tls.down)
        cls.make_users(cls.plain.uri)
        cls.make_users(cls.tls.uri, tls=True, tlsCAFile=str(cls.ours.certificate))

    @classmethod
    def make_users(cls, uri, **tls):
        secure_servers.first_user(uri, **tls)
        with secure_servers.as_root(uri, **tls) as client:
            for database, name, more in (
                    ("admin", "sha-1", {"pwd": PASSWORD, "mechanisms": ["SCRAM-SHA-1"]}),
                    ("admin", "sha-256", {"pwd": PASSWORD, "mechanisms": ["SCRAM-SHA-256"]}),
                    ("other", "loader", {"pwd": PASSWORD}),
                    ("$external", "CN=loader,O=shardload clients", {})):
                client[database].command("createUser", name, **more, roles=[
                    {"role": "readWriteAnyDatabase", "db": "admin"},
                    {"role": "clusterMonitor", "db": "admin"}])

    def setUp(self):
        super().setUp()
        self.source = self.file("t.txt", support.mot_text([1]))

    def uri(self, server, userinfo="", host="127.0.0.1", options=""):
        return f"mongodb://{userinfo}{host}:{server.port}/?{PATIENCE}{options}"

    def load(self, *words, code=EXIT_OK, **more):
        return self.shardload("load", "-d", "mot", "-c", f"t{next(self._counter)}", "--drop",
                              "--work-dir", f"work-{next(self._counter)}", "--progress", "none",
                              *words, self.source, code=code, **more)

    def query(self, collection, *words, **more):
        return self.run_program("shardquery", "run", "-d", "mot", "-c", collection, "--repeat", 1,
                                "--query", "makes", *words, "mot", **more)

    def with_tls(self, *words):
        return ["--uri", self.uri(self.tls), "--tlsCAFile", self.ours.certificate, *words]

    def assert_refused(self, outcome, *parts, code=EXIT_CLUSTER):
        """One line of standard error gives the reason, and contains these parts."""
        self.assertEqual(outcome.code, code, outcome.text)
        (line,) = [line for line in outcome.err.splitlines() if line.startswith("shardload: ")]
        for part in parts:
            self.assertIn(part, line)


class Users(SecureCase):
    def test_a_password_is_accepted_from_every_documented_place(self):
        config = self.file("c.yaml", f"username: sha-256\npassword: '{PASSWORD}'\n")
        config.chmod(0o600)
        secret = self.file("secret", f"{PASSWORD}\r\nnot this\n")
        secret.chmod(0o600)
        with_user, with_password = self.uri(self.plain, "sha-256@"), self.uri(
            self.plain, f"sha-256:{encoded(PASSWORD)}@")
        plain = self.uri(self.plain)
        cases = {
            "URI": (["--uri", with_password], {}),
            "options": (["--uri", plain, "-u", "sha-256", "-p", PASSWORD], {}),
            "user in the URI": (["--uri", with_user, f"--password={PASSWORD}"], {}),
            "file": (["--uri", plain, "-u", "sha-256", "--password-file", secret], {}),
            "configuration": (["--uri", plain, "--config", config], {}),
            "environment": (["--uri", with_user], {"SHARDLOAD_PASSWORD": PASSWORD}),
            "URI in the environment": ([], {"SHARDLOAD_URI": with_password}),
            "an option over the URI": (
                ["--uri", self.uri(self.plain, "nobody:nothing@"), "-u", "sha-1",
                 "-p", PASSWORD], {}),
            "another database": (["--uri", plain, "-u", "loader", "-p", PASSWORD,
                                  "--authenticationDatabase", "other"], {}),
            "database of the URI": (["--uri", plain.replace("/?", "/other?"), "-u", "loader",
                                     "-p", PASSWORD], {}),
            "SCRAM-SHA-1": (["--uri", plain, "-u", "sha-1", "-p", PASSWORD,
                             "--authenticationMechanism", "SCRAM-SHA-1"], {}),
            "SCRAM-SHA-256": (["--uri", plain, "-u", "sha-256", "-p", PASSWORD,
                               "--authenticationMechanism", "SCRAM-SHA-256"], {}),
        }
        for name, (words, environment) in cases.items():
            with self.subTest(name):
                outcome = self.load(*words, environment=support.clean_environment(**environment))
                self.assertNotIn("warning", outcome.text)

    def test_commands_have_the_password_if_it_is_in_the_environment(self):
        """They may be these programs, too. A password that was given in another way reaches no other process."""
        self.shardload("load", "-d", "mot", "-c", "t", "--drop", "--uri", self.uri(self.plain), "-u", "sha-1",
                       "-p", PASSWORD, "--work-dir", "w", self.source)
        for words, more, seen in ((["-p", PASSWORD], {}, ""), ([], {"SHARDLOAD_PASSWORD": PASSWORD}, PASSWORD)):
            self.query("t", "--uri", self.uri(self.plain), "-u", "sha-1", *words, "--cold", "env -0 > environment",
                       environment=support.clean_environment(**more)).expect(EXIT_OK)
            found = (self.scratch / "environment").read_text().split("\0")
            self.assertEqual([each for each in found if PASSWORD in each], [f"SHARDLOAD_PASSWORD={seen}"] * bool(seen))

    def test_a_password_file_that_others_may_read_causes_a_warning(self):
        for name, content, words in (
                ("secret", PASSWORD, ["-u", "sha-256", "--password-file"]),
                ("c.yaml", f"username: sha-256\npassword: '{PASSWORD}'\n", ["--config"])):
            path = self.file(name, content)
            path.chmod(0o644)
            self.load("--uri", self.uri(self.plain), *words, path,
                      message=f"warning: {path} contains a password and can be read by other users")
            if os.geteuid() == 0:
                path.chmod(0o600)
                os.chown(path, support.NOBODY, support.NOBODY)
                self.load("--uri", self.uri(self.plain), *words, path,
                          message=f"warning: {path} contains a password and belongs to another user")
        path = self.file("key.yaml", "uri: mongodb://127.0.0.1:1/?tls=true&tlsCertificateKeyFilePassword=c4nary\n")
        path.chmod(0o644)
        self.shardload("doctor", "--config", path, code=support.EXIT_CLUSTER,
                       message=f"warning: {path} contains a password and can be read by other users")

    def test_options_that_do_not_fit_a_password_are_reported(self):
        uri = ["--uri", self.uri(self.plain)]
        empty = self.file("empty", "\nsecond line\n")
        for words, part in (
                ([*uri, "-p", PASSWORD], "--password without --username"),
                ([*uri, "--authenticationMechanism", "SCRAM-SHA-256"], "needs a user: add"),
                ([*uri, "--authenticationMechanism", "MONGODB-X509", "-u", "a", "-p", PASSWORD], "takes no password"),
                ([*uri, "--authenticationMechanism", "MONGODB-X509"], "MONGODB-X509 needs a client certificate"),
                ([*uri, "--authenticationMechanism", "MONGODB-X509", "--tls"],
                 "MONGODB-X509 needs a client certificate"),
                ([*uri, "-u", "a", "--password-file", empty], "its first line is empty"),
                ([*uri, "-u", "a", "--password-file", "nowhere"], "No such file"),
                ([*uri, "-u", "a", "-p", "x", "--password-file", empty], "not both"),
                (["--uri", "host:1", "mongodb://u:" + PASSWORD + "@h/"], "give it with --uri")):
            with self.subTest(part):
                self.load(*words, code=EXIT_USAGE, message=part)

    def test_a_refused_user_is_reported_at_once(self):
        for userinfo, words, parts in (
                (f"sha-256:{encoded('wrong' + PASSWORD)}@", [], ["sha-256", "database admin"]),
                (f"nobody:{encoded(PASSWORD)}@", [], ["nobody", "no such user"]),
                ("", ["-u", "loader", "-p", PASSWORD], ["loader", "--authenticationDatabase"]),
                ("", ["-u", "sha-1", "-p", PASSWORD, "--authenticationMechanism",
                      "SCRAM-SHA-256"], ["sha-1", "SCRAM-SHA-256"])):
            with self.subTest(userinfo=userinfo, words=words):
                self.assert_refused(self.load("--uri", self.uri(self.plain, userinfo), *words, code=None), *parts)


class Terminal(SecureCase):
    """The prompt for a password, on a pseudo-terminal."""

    @classmethod
    def start_servers(cls):
        cls.plain = Server(cls.folder / "plain", ["--standalone", "--cache", "0.25"], ["--auth"])
        cls.addClassCleanup(cls.plain.down)
        cls.make_users(cls.plain.uri)

    def on_terminal(self, *words, stdin):
        """Starts a load with a controlling terminal that is not its standard input. Returns (the
        process, the other end of the terminal)."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        program = support.program("shardload")

        def take_terminal():
            os.setsid()
            import fcntl
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        child = subprocess.Popen(
            [program, "load", "-d", "mot", "-c", "typed", "--drop", "--work-dir",
             f"work-{next(self._counter)}", "--progress", "none", *map(str, words)], cwd=self.scratch, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=take_terminal,
            env=support.clean_environment(), pass_fds=[theirs])
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.close(theirs)
        return child, ours

    def read_until(self, terminal, word):
        text = b""
        while word not in text:
            text += os.read(terminal, 1000)
        return text

    def test_the_password_is_read_from_the_terminal_without_echo_while_data_comes_from_a_file(self):
        for words in (["-u", "sha-256", "-"], ["-u", "sha-256", "-", "-p"]):
            with self.subTest(words), open(self.source, "rb") as data:
                child, terminal = self.on_terminal("--uri", self.uri(self.plain), *words, stdin=data)
                question = self.read_until(terminal, b": ")
                self.assertIn(f"Password of sha-256 at 127.0.0.1:{self.plain.port}".encode(), question)
                self.assertFalse(termios.tcgetattr(terminal)[3] & termios.ECHO)
                os.write(terminal, PASSWORD.encode() + b"\n")
                shown = self.read_until(terminal, b"\n")
                self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)
                output = child.stdout.read()
                self.assertEqual(child.wait(support.LIMIT), EXIT_OK, output)
                self.assertNotIn(SECRETS[0], shown + output)

    def test_ctrl_c_at_the_prompt_restores_the_terminal(self):
        child, terminal = self.on_terminal("--uri", self.uri(self.plain, "sha-256@"), self.source,
                                           stdin=subprocess.DEVNULL)
        self.read_until(terminal, b": ")
        os.write(terminal, b"\x03")
        self.assertEqual(child.wait(support.LIMIT), -signal.SIGINT)
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)

    def test_without_a_terminal_a_missing_password_is_an_error(self):
        child = subprocess.run(
            [support.program("shardload"), "load", "--uri", self.uri(self.plain, "sha-256@"), "-d",
             "mot", "-c", "t", str(self.source)], cwd=self.scratch, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=support.LIMIT, start_new_session=True,
            env=support.clean_environment(), check=False)
        self.assertEqual(child.returncode, EXIT_USAGE)
        self.assertIn("there is no terminal to ask for it", child.stderr)


class Tls(SecureCase):
    def test_users_of_every_kind_load_and_query(self):
        locked = self.ours.issue("locked", CLIENTS + "loader", password=KEY_PASSWORD)
        for name, words in {
                "SCRAM-SHA-1": ["-u", "sha-1", "-p", PASSWORD],
                "SCRAM-SHA-256": ["-u", "sha-256", "-p", PASSWORD],
                "SCRAM and a certificate": ["-u", "sha-256", "-p", PASSWORD, "--tlsCertificateKeyFile", self.loader],
                "X.509": ["--tlsCertificateKeyFile", self.loader, "--authenticationMechanism", "MONGODB-X509"],
                "X.509 with an encrypted key": [
                    "--tlsCertificateKeyFile", locked, "--authenticationMechanism",
                    "MONGODB-X509", "--tlsCertificateKeyFilePassword", KEY_PASSWORD]}.items():
            with self.subTest(name):
                self.load(*self.with_tls(*words), "-c", "by", message="= inserted")
                outcome = self.query("by", *self.with_tls(*words))
                self.assertEqual((outcome.code, outcome.err), (EXIT_OK, ""))
        options = (f"&tls=true&tlsCAFile={encoded(str(self.ours.certificate))}"
                   f"&tlsCertificateKeyFile={encoded(str(self.loader))}"
                   "&authMechanism=MONGODB-X509")
        self.load("--uri", self.uri(self.tls, options=options))

    def test_a_failed_tls_connection_is_reported_at_once(self):
        expired = self.ours.issue("expired", CLIENTS + "loader", expired=True)
        stranger = self.theirs.issue("stranger", CLIENTS + "loader")
        unknown = self.ours.issue("unknown", CLIENTS + "unknown")
        by_certificate = ["--authenticationMechanism", "MONGODB-X509", "--tlsCertificateKeyFile"]
        for name, words, part in (
                ("plain text", ["--uri", self.uri(self.tls)], "the server requires TLS; give --tls"),
                ("TLS where there is none", ["--uri", self.uri(self.plain), "--tls"], "does not use TLS"),
                ("an unknown authority",
                 ["--uri", self.uri(self.tls), "--tlsCAFile", self.theirs.certificate],
                 f"not signed by an authority in {self.theirs.certificate}"),
                ("no authority", ["--uri", self.uri(self.tls), "--tls"],
                 "not signed by an authority in this machine's default list"),
                # 127.1 is the same server, but the certificate has another name.
                ("another name", ["--uri", self.uri(self.tls, host="127.1"), "--tlsCAFile",
                                  self.ours.certificate],
                 "is for localhost, 127.0.0.1, not for 127.1"),
                ("an expired client certificate", self.with_tls(*by_certificate, expired),
                 "expired on Jan  1 00:00:00 2002"),
                ("a client certificate of strangers", self.with_tls(*by_certificate, stranger),
                 "seems not to accept the client certificate"),
                ("an unknown subject", self.with_tls(*by_certificate, unknown),
                 'has no user for this client certificate: create user "CN=unknown,O=shardload'),
                ("a wrong password", self.with_tls("-u", "sha-1", "-p", "wrong"), "wrong password")):
            with self.subTest(name):
                self.assert_refused(self.load(*words, code=None), "cannot use mongodb://", part)

    def test_an_expired_certificate_of_the_server_is_reported_at_once(self):
        impostor = Impostor(self.ours.issue("old", "/O=servers/CN=localhost", ALTERNATIVE, expired=True))
        self.addCleanup(impostor.close)
        self.assert_refused(
            self.load("--uri", self.uri(impostor), "--tlsCAFile", self.ours.certificate, code=None),
            "the server's certificate expired on Jan  1 00:00:00 2002")

    def test_a_certificate_that_is_exchanged_later_is_named(self):
        """The message said "connection refused; is the server running" once the first connections were made."""
        other = Authority(self.scratch / "exchanged", "Other").issue("server", "/O=servers/CN=localhost", ALTERNATIVE)
        for relayed in (2, 3):
            impostor = Impostor(other, self.tls, relayed)
            self.addCleanup(impostor.close)
            self.assert_refused(
                self.load("--uri", f"mongodb://127.0.0.1:{impostor.port}/?serverSelectionTimeoutMS=1000", "--tlsCAFile",
                          self.ours.certificate, "--retry-timeout", 1, "-u", "sha-1", "-p", PASSWORD, code=None),
                "certificate verify failed")

    def test_a_name_that_looks_like_the_address_does_not_count(self):
        impostor = Impostor(self.ours.issue("named", "/O=servers/CN=127.0.0.1", "DNS:127.0.0.1"))
        self.addCleanup(impostor.close)
        self.assert_refused(
            self.load("--uri", f"mongodb://127.0.0.1:{impostor.port}/", "--tlsCAFile", self.ours.certificate,
                      code=None), "is for 127.0.0.1, not for the address 127.0.0.1")

    def test_a_server_that_requires_a_client_certificate_is_reported(self):
        strict = Server(self.scratch / "strict", ["--standalone", "--cache", "0.25"],
                        ["--tlsMode=requireTLS", *self.tls_options[:2]])
        self.addCleanup(strict.down)
        words = ["--uri", self.uri(strict), "--tlsCAFile", self.ours.certificate]
        self.assert_refused(self.load(*words, code=None), "seems to require a client certificate")
        self.load(*words, "--tlsCertificateKeyFile", self.loader)

    def test_unusable_certificate_files_are_named(self):
        locked = self.ours.issue("locked2", CLIENTS + "loader", password=KEY_PASSWORD)
        other = self.ours.issue("other", CLIENTS + "other")
        mixed = self.file("mixed.pem", (self.ours.folder / "loader.crt").read_bytes() +
                          (self.ours.folder / "other.key").read_bytes())
        self.assertTrue(other.exists())
        nothing = self.file("nothing.pem", "no certificate\n")
        key, word = "--tlsCertificateKeyFile", "--tlsCertificateKeyFilePassword"
        for words, part in (
                ([key, locked], "encrypted, and no password is given"),
                ([key, locked, word, "wrong"], "the given password is wrong"),
                ([key, mixed], "does not belong to the certificate"),
                ([key, self.ours.folder / "loader.crt"], "no private key in it"),
                ([key, nothing], "no certificate in it"),
                ([key, "nowhere.pem"], "nowhere.pem: No such file")):
            with self.subTest(part):
                self.assert_refused(self.load(*self.with_tls(*words), code=None), part, code=EXIT_USAGE)
        self.assert_refused(self.load("--uri", self.uri(self.tls), "--tlsCAFile", nothing,
                                      code=None), "no certificate in it", code=EXIT_USAGE)


class ReplicaSet(SecureCase):
    """Three members, which authenticate each other by a key file, and clients by TLS."""

    @classmethod
    def start_servers(cls):
        key = cls.folder / "key"
        key.write_text("a2V5IG9mIHRoZSB0ZXN0cyBhbG9uZQ==")
        key.chmod(0o600)
        cls.set = Server(cls.folder / "set", ["--shards", "0", "--replicas", "3", "--cache", "0.25"],
                         [f"--keyFile={key}", "--tlsMode=preferTLS", *cls.tls_options])
        cls.addClassCleanup(cls.set.down)
        cls.make_users(cls.set.uri, tls=True, tlsCAFile=str(cls.ours.certificate))

    def test_users_load_and_query(self):
        for words in (["-u", "sha-256", "-p", PASSWORD],
                      ["--tlsCertificateKeyFile", self.loader, "--authenticationMechanism",
                       "MONGODB-X509"]):
            with self.subTest(words[0]):
                words = ["--uri", self.set.uri + f"&{PATIENCE}", "--tlsCAFile", self.ours.certificate, *words]
                self.load(*words, "-c", "set", message="replica set")
                self.assertEqual(self.query("set", *words).code, EXIT_OK)

    def test_a_wrong_password_is_reported_at_once(self):
        outcome = self.load("--uri", self.set.uri + f"&{PATIENCE}", "--tlsCAFile",
                            self.ours.certificate, "-u", "sha-256", "-p", "wrong", code=None)
        self.assert_refused(outcome, 'refuses user "sha-256"')


class Secrets(SecureCase):
    def assert_no_secret(self, *outcomes):
        """No output and no file of the programs contains a secret."""
        leaks = [(name, text) for name, text in
                 [("output", outcome.text.encode()) for outcome in outcomes] +
                 list(support.every_text_in(self.scratch))
                 if any(secret.lower() in text.lower() for secret in SECRETS)]
        self.assertEqual(leaks, [])

    def test_no_secret_is_printed_or_written(self):
        locked = self.ours.issue("locked3", CLIENTS + "loader", password=KEY_PASSWORD)
        user = f"sha-256:{encoded(PASSWORD)}@"
        careless = f"sha-256:{PASSWORD}@"  # not percent-encoded
        key = f"&tlsCertificateKeyFile={encoded(str(locked))}" \
              f"&tlsCertificateKeyFilePassword={encoded(KEY_PASSWORD)}" \
              f"&tlsCAFile={encoded(str(self.ours.certificate))}&tls=true"
        plain = ["--uri", self.uri(self.plain)]
        for words in (
                ["--uri", self.uri(self.plain, user)],
                ["--uri", self.uri(self.tls, user, options=key)],
                [*plain, "-u", "sha-256", "-p", PASSWORD],
                [*plain, "-u", "sha-256", f"-p{PASSWORD}"],
                self.with_tls("--tlsCertificateKeyFile", locked, "--tlsCertificateKeyFilePassword",
                              KEY_PASSWORD, "--authenticationMechanism", "MONGODB-X509"),
                # With mistakes
                ["--uri", self.uri(self.plain, f"nobody:{encoded(PASSWORD)}@")],
                [*plain, "-u", "nobody", "-p", PASSWORD],
                ["--uri", self.uri(self.tls, user)],
                ["--uri", self.uri(self.plain, careless)],
                ["--uri", self.uri(self.plain, careless).replace("mongodb", "mongo")],
                ["--uri", self.uri(self.plain, "sha-256:a@Xyzzy7@")],
                ["--uri", self.uri(self.plain, user).replace("mongodb://", "")],
                ["--uri", self.uri(self.plain, user, options="&tls=perhaps")],
                ["--uri", self.uri(self.plain, user, options=f"&nonsense&w={encoded(KEY_PASSWORD)}"
                                   ).replace("&w=", "&authMechanismProperties=SECRET:")],
                ["--uri", self.uri(self.plain, user, options=key + "&authMechanism=none")],
                ["--uri", self.uri(self.plain, user).replace(str(self.plain.port), "port")],
                ["--uri", self.uri(self.tls, options=key.replace("Plugh8", "%ZZPlugh8"))],
                ["--uri", "host", self.uri(self.plain, user)],
                [*plain, "--tlsCertificateKeyFilePassword", KEY_PASSWORD, "--tlsCAFile", "nowhere"],
                [*plain, "-u", "sha-256", "-p", PASSWORD, "--threads", "many"],
                [*plain, "-u", "sha-256", "-p", PASSWORD * 60],
                [f"--passwrd={PASSWORD}"]):
            with self.subTest(words):
                report = ["--report", f"report-{next(self._counter)}.json"]
                self.assert_no_secret(self.load(*words, *report, code=None), self.query("t1", *words, *report))
        inspected = self.shardload("inspect", "--password", PASSWORD, self.source, code=EXIT_USAGE)
        self.assert_no_secret(inspected)

    def waiting_load(self, *words, **more):
        """Starts a load that waits for its input. Returns its process."""
        if os.geteuid() == 0:  # as another user, to whom file permissions apply
            os.chown(self.scratch, support.NOBODY, support.NOBODY)
            more |= {"user": support.NOBODY, "group": support.NOBODY, "extra_groups": []}
        try:
            process = subprocess.Popen(
                [support.program("shardload"), "load", "-d", "mot", "-c", "pipe", "--work-dir",
                 "work", *words, "-"], cwd=self.scratch, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        except PermissionError:
            self.skipTest("an ordinary user may not run shardload")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        return process

    def test_no_secret_stays_in_the_list_of_processes(self):
        process = self.waiting_load(
            "--uri", self.uri(self.plain, f"sha-256:{encoded(PASSWORD)}@"), f"--password={PASSWORD}",
            "--tlsCertificateKeyFilePassword", KEY_PASSWORD, env=support.clean_environment())

        def listed():
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                return file.read()

        self.wait_for(lambda: b"mongodb://***@127.0.0.1" in listed() and not any(
            secret in listed() for secret in SECRETS), "a command line without secrets")
        self.assertIsNone(process.poll(), "it has ended")

    def test_a_process_with_a_password_is_closed_to_its_user(self):
        """No core dump, and only root may read its memory and environment."""
        process = self.waiting_load(
            "--uri", self.uri(self.plain, "sha-256@"),
            env=support.clean_environment(SHARDLOAD_PASSWORD=PASSWORD))
        self.wait_for(lambda: os.stat(f"/proc/{process.pid}/environ").st_uid == 0, "root as owner")
        self.assertIsNone(process.poll(), "it has ended")

    def test_files_are_private_and_links_are_not_followed(self):
        words = ["--uri", self.uri(self.plain), "-u", "sha-256", "-p", PASSWORD]
        bad = self.file("bad.txt", support.mot_text([1]) + "not a record\n")
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.shardload("load", *words, "-d", "mot", "-c", "files", "--work-dir", "work", "--report",
                       "report.json", bad, code=support.EXIT_REJECTS)
        self.query("files", *words, "--report", "query.json")
        os.umask(before)
        self.assertEqual(stat.S_IMODE((self.scratch / "work").stat().st_mode), 0o700)
        written = [path for path in (self.scratch / "work").rglob("*") if path.is_file()]
        written += [self.scratch / "report.json", self.scratch / "query.json"]
        self.assertEqual({path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in written},
                         {path.name: "0o600" for path in written})
        self.assertLessEqual({"shardload.log", "journal", "run.json", "rejects.tsv", "query.json"},
                             {path.name for path in written})

        precious = self.file("precious", "mine")
        for link in ("work/shardload.log", "work/journal", "work/rejects.tsv", "work/run.json", "report.json"):
            with self.subTest(link):
                folder = self.scratch / f"links-{next(self._counter)}"
                (folder / link).parent.mkdir(parents=True)
                (folder / link).symlink_to(precious)
                self.shardload("load", *words, "-d", "mot", "-c", "links", "--drop", "--work-dir",
                               folder / "work", "--report", folder / "report.json", bad,
                               code=EXIT_USAGE)
                self.assertEqual(precious.read_text(), "mine")
        (self.scratch / "link.json").symlink_to(precious)
        self.assertEqual(self.query("files", *words, "--report", "link.json").code, EXIT_USAGE)
        self.assertEqual(precious.read_text(), "mine")
