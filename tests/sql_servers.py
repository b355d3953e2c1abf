# SPDX-License-Identifier: Apache-2.0
"""Servers of other databases, from their packages: started in a folder, on a socket in it, and ended
with the test."""
import contextlib
import glob
import os
import shutil
import subprocess
import unittest

NOBODY = 65534
LIMIT = 120


def tool(*names):
    """The path of the first of these programs that is installed; skips the test if none is."""
    for name in names:
        for path in (shutil.which(name), *sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True),
                     f"/usr/sbin/{name}"):
            if path and os.access(path, os.X_OK):
                return path
    raise unittest.SkipTest(f"{' or '.join(names)} is not installed")


def as_nobody():
    """Servers refuse to run as root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def run(words, text="", **more):
    done = subprocess.run([str(word) for word in words], input=text.encode("utf-8"), capture_output=True,
                          timeout=LIMIT, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr.decode('utf-8', 'replace')}")
    return done.stdout


class Server:
    """A folder that belongs to the user of the server."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            for parent in folder.parents:
                with contextlib.suppress(PermissionError):
                    if not parent.stat().st_mode & 1:
                        parent.chmod(parent.stat().st_mode | 0o11)


class Postgres(Server):
    def __init__(self, folder):
        super().__init__(folder)
        self.data = folder / "data"
        self.psql_path = tool("psql")
        run([tool("initdb"), "-D", self.data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C",
             "--no-sync"], **as_nobody())
        run([tool("pg_ctl"), "-D", self.data, "-w", "-l", folder / "log", "-o",
             f"-c listen_addresses= -c fsync=off -k {folder}", "start"], cwd=folder, **as_nobody())

    def stop(self):
        run([tool("pg_ctl"), "-D", self.data, "-m", "immediate", "stop"], cwd=self.folder, **as_nobody())

    def psql(self, text):
        return run([self.psql_path, "-h", self.folder, "-U", "test", "-d", "postgres", "-X", "-q", "-A", "-t",
                    "-v", "ON_ERROR_STOP=1"], text)

    def export(self, program, *words):
        return run([tool(program), "-h", self.folder, "-U", "test", *words, "postgres"])


class MariaDB(Server):
    def __init__(self, folder):
        super().__init__(folder)
        self.data, self.socket = folder / "data", folder / "s"
        server, install = tool("mariadbd", "mysqld"), tool("mariadb-install-db", "mysql_install_db")
        self.client, self.dump = tool("mariadb", "mysql"), tool("mariadb-dump", "mysqldump")
        run([install, "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal",
             "--skip-test-db"], **as_nobody())
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [server, "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}",
                 f"--pid-file={folder}/pid", "--skip-networking", "--secure-file-priv=", f"--tmpdir={folder}",
                 "--innodb-flush-log-at-trx-commit=0"],
                stdout=log, stderr=log, **as_nobody())

    def stop(self):
        self.process.kill()
        self.process.wait()

    def is_ready(self):
        done = subprocess.run([*self.words(self.client), "-e", "SELECT 1"], capture_output=True, check=False)
        return done.returncode == 0

    def words(self, program):
        return [program, "--no-defaults", f"--socket={self.socket}", "-uroot"]

    def mysql(self, text, *options):
        return run([*self.words(self.client), "--default-character-set=utf8mb4", *options], text)

    def export(self, *words):
        return run([*self.words(self.dump), *words])
