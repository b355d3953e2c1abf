# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: what they contain and depend on, and that the programs in them run."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import support

EVERYWHERE = ["usr/share/doc/{}/copyright", "usr/share/doc/{}/changelog.gz", "usr/share/doc/{}/changelog.Debian.gz"]


def output(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          timeout=5 * support.LIMIT, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}\n{done.stdout}{done.stderr}")
    return done.stdout


class Packages(support.Case):
    @classmethod
    def setUpClass(cls):
        for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"{tool} is not installed")
        support.program("shardload-router")
        build = pathlib.Path(os.environ["SHARDLOAD_BUILD"])
        cache = (build / "CMakeCache.txt").read_text("utf-8")
        if re.search(r"^SHARDLOAD_(SANITIZE:\S*=.|COVERAGE:BOOL=ON)", cache, re.M):
            raise unittest.SkipTest("the build is one with sanitizers or for coverage")
        cls.folder = pathlib.Path(support.tempfile.mkdtemp(prefix="shardload-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        output("cpack", "--config", build / "CPackConfig.cmake", "-B", cls.folder, umask=0o077)
        cls.packages, cls.roots = {}, {}
        for package in cls.folder.glob("*.deb"):
            name = package.name.partition("_")[0]
            cls.packages[name] = package
            cls.roots[name] = cls.folder / name
            output("dpkg-deb", "-x", package, cls.roots[name])

    def files(self, name):
        return {str(path.relative_to(self.roots[name])) for path in self.roots[name].rglob("*") if not path.is_dir()}

    def field(self, name, field):
        return output("dpkg-deb", "-f", self.packages[name], field).strip()

    def test_there_are_two_packages(self):
        self.assertEqual(set(self.packages), {"shardload", "libshardload-dev"})

    def test_the_programs_have_pages_and_completions_and_data(self):
        expected = {text.format("shardload") for text in EVERYWHERE}
        for program in ("shardload", "shardquery"):
            expected |= {f"usr/bin/{program}", f"usr/share/man/man1/{program}.1.gz",
                         f"usr/share/bash-completion/completions/{program}",
                         f"usr/share/zsh/vendor-completions/_{program}",
                         f"usr/share/fish/vendor_completions.d/{program}.fish"}
        expected |= {"usr/bin/shardload-localcluster", "usr/share/man/man1/shardload-localcluster.1.gz",
                     "usr/libexec/shardload/shardload-router", "usr/libexec/shardload/shardload-clusterctl"}
        for folder in ("schemas", "queries", "models"):
            expected |= {f"usr/share/shardload/{folder}/{path.name}" for path in (support.TREE / folder).iterdir()}
        expected |= {f"usr/share/doc/shardload/docs/{path.relative_to(support.TREE / 'docs')}"
                     for path in (support.TREE / "docs").rglob("*.md")}
        self.assertEqual(expected - self.files("shardload"), set())

    def test_the_library_is_complete(self):
        headers = {f"usr/include/shardload/{path.name}" for path in (support.TREE / "include/shardload").iterdir()}
        found = self.files("libshardload-dev")
        self.assertEqual({name for name in found if "/include/" in name}, headers)
        self.assertEqual({name for name in found if "/usr/lib/" in f"/{name}"},
                         {name for name in found if re.fullmatch(
                             r"usr/lib/[\w-]+-linux-gnu/(libshardload\.a|pkgconfig/shardload\.pc)", name)})
        self.assertEqual({text.format("libshardload-dev") for text in EVERYWHERE} - found, set())

    def test_dependencies(self):
        depends = self.field("shardload", "Depends")
        for library in ("libc6", "libmongoc", "libbson", "libyaml", "libarchive13", "libssl", "zlib1g",
                        "liblzma5", "libzstd1", "liblz4-1", "libbz2", "python3"):
            self.assertIn(library, depends)
        self.assertNotIn("cmocka", depends)
        depends = self.field("libshardload-dev", "Depends").split(", ")
        setup = '. "$1/tools/setup.sh" && printf "%s\\n" "${build_packages[@]}"'
        build = {name for name in output("bash", "-c", setup, "bash", support.TREE).split()
                 if name.endswith("-dev") and name not in ("libc6-dev", "libisal-dev")}
        self.assertEqual(set(depends) - {"libisal-dev"}, build)

    def test_modes_are_those_of_a_package_whatever_the_umask_is(self):
        for package in self.packages.values():
            for line in output("dpkg-deb", "-c", package).splitlines():
                words = line.split()
                self.assertIn(words[0], ("drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"), line)
                self.assertEqual(words[1], "root/root", line)

    def test_lintian_finds_nothing(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning",
                               *self.packages.values()], capture_output=True, text=True, check=False,
                              timeout=5 * support.LIMIT)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_programs_are_hardened(self):
        """Position-independent, with a stack that cannot be executed and addresses of functions that
        cannot be overwritten; buffers and stack are checked; targets of indirect branches are marked."""
        for tool in ("readelf", "objdump"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        programs = [path for path in self.roots["shardload"].rglob("usr/*/**/shard*")
                    if path.is_file() and path.read_bytes().startswith(b"\x7fELF")]
        self.assertEqual(len(programs), 4)
        for program in programs:
            with self.subTest(program.name):
                headers = output("readelf", "-hldW", program)
                self.assertRegex(headers, r"Type: +DYN ")
                self.assertRegex(headers, r"GNU_STACK .* RW +0x")
                self.assertIn("GNU_RELRO", headers)
                self.assertRegex(headers, r"FLAGS.*\bNOW\b.*\bPIE\b")
                symbols = output("readelf", "--dyn-syms", "-W", program)
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__\w+_chk\b(?<!__stack_chk)")
                branch = {"x86_64": "endbr64", "aarch64": "paciasp"}.get(os.uname().machine)
                if branch:
                    self.assertGreater(output("objdump", "-d", program).count(branch), 20)

    def packaged(self, program, *words):
        return output(self.roots["shardload"] / "usr/bin" / program, *words, cwd=self.scratch,
                      env=support.clean_environment())

    def test_the_programs_run(self):
        version = self.field("shardload", "Version").partition("-")[0]
        for program in ("shardload", "shardquery"):
            self.assertEqual(self.packaged(program, "--version"), f"{program} {version}\n")
            self.assertIn("Commands:", self.packaged(program, "--help"))
        self.assertIn("up|status|uri|down", self.packaged("shardload-localcluster", "--help"))

    def test_a_load_with_the_packaged_program(self):
        (self.scratch / "people.csv").write_text("name,age\nAnn,31\nBob,4\n", "utf-8")
        self.packaged("shardload", "load", "--sink", "bson:people.bson", "people.csv")
        self.assertEqual(len(support.bson_documents((self.scratch / "people.bson").read_bytes())), 2)

    def test_the_installed_localcluster_finds_its_router(self):
        script = self.roots["shardload"] / "usr/bin/shardload-localcluster"
        program = ("import importlib.machinery, importlib.util, sys\n"
                   "loader = importlib.machinery.SourceFileLoader('localcluster', sys.argv[1])\n"
                   "module = importlib.util.module_from_spec(importlib.util.spec_from_loader("
                   "'localcluster', loader))\n"
                   "loader.exec_module(module)\n"
                   "print(module.build_programs(['shardload-router', 'shardload-clusterctl']))")
        found = output("python3", "-B", "-c", program, script, env=support.clean_environment())
        self.assertEqual(found.strip(), str(self.roots["shardload"] / "usr/libexec/shardload"))


class Configuring(support.Case):
    def configure(self, *options):
        """Configures the tree on a machine without cmocka: with a copy of the pkg-config files."""
        modules = self.scratch / "pkgconfig"
        modules.mkdir(exist_ok=True)
        for folder in output("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":"):
            for path in pathlib.Path(folder).glob("*.pc"):
                if path.name != "cmocka.pc" and not (modules / path.name).exists():
                    (modules / path.name).symlink_to(path)
        environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(modules)}
        environment.pop("PKG_CONFIG_PATH", None)
        build = self.scratch / "build"
        done = subprocess.run(["cmake", "-S", support.TREE, "-B", build, *options], check=False,
                              capture_output=True, text=True, timeout=5 * support.LIMIT,
                              env=environment)
        return done, (build / "CMakeCache.txt").read_text("utf-8")

    def test_without_cmocka_the_tests_are_off_unless_they_are_asked_for(self):
        for tool in ("cmake", "pkg-config"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        done, cache = self.configure()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the tests are not built", done.stdout)
        self.assertRegex(cache, r"SHARDLOAD_TESTS:BOOL=(OFF|0|)\n")
        done, _ = self.configure("-DSHARDLOAD_TESTS=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("apt-get install libcmocka-dev", done.stderr)
