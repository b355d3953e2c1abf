# SPDX-License-Identifier: Apache-2.0
"""The roles in docs/security.md have the privileges that the commands need, and no others; when one
privilege is missing, the message names it and its purpose."""
import copy
import json
import os
import re

import dump_making as making
import secure_servers
import servers
import support
from support import EXIT_CLUSTER, EXIT_OK, TREE

DATABASE, COLLECTION = "mot", "tests"
PASSWORD = "Xyzzy7"


def documented_roles():
    text = (TREE / "docs" / "security.md").read_text(encoding="utf-8")
    roles = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.S)]
    return {role["createRole"]: role for role in roles}


class Privileges(support.Case):
    @classmethod
    def setUpClass(cls):
        support.program("shardload")
        secure_servers.start_for_class(cls)

    def setUp(self):
        super().setUp()
        self.source = self.file("t.txt", support.mot_text([1]))
        version = self.root.server_info()["versionArray"][:2]
        self.by_uuid, self.clustered = version >= [6, 0], ["--clustered"] * (version >= [5, 3])
        self.start_anew()

    def start_anew(self, *collections):
        """Removes all users but root, all roles and the database; creates these collections."""
        self.root.drop_database(DATABASE)
        for user in self.root.admin.command("usersInfo")["users"]:
            if user["user"] != "root":
                self.root.admin.command("dropUser", user["user"])
        self.root.admin.command("dropAllRolesFromDatabase")
        for collection in collections:
            self.root[DATABASE].create_collection(collection)

    def allow(self, *roles):
        """Creates these roles and a user with the last of them. Returns the user's options."""
        for role in roles:
            self.root.admin.command(role)
        name = "user of " + roles[-1]["createRole"]
        self.root.admin.command("createUser", name, pwd=PASSWORD, roles=[roles[-1]["createRole"]])
        return ["--uri", self.server.uri, "-u", name, "-p", PASSWORD, "-d", DATABASE, "-c", COLLECTION]

    def each_one_missing(self, role):
        """Copies of the role, each without one of its privileges."""
        for p, privilege in enumerate(role["privileges"]):
            for action in privilege["actions"]:
                less = copy.deepcopy(role)
                actions = less["privileges"][p]["actions"]
                actions.remove(action)
                if not actions:
                    del less["privileges"][p]
                resource = privilege["resource"]
                where = ".".join(filter(None, (resource["db"], resource["collection"])))
                yield less, action, where

    def assert_named(self, outcome, action, where):
        """One line names the missing privilege. (A load without collStats only warns; before server 6.0 also one
        without inprog.)"""
        (line,) = [line for line in outcome.err.splitlines() if "lacks the privilege" in line and
                   (action == "collStats" or "collStats" not in line) and
                   (self.by_uuid or "cannot check whether another program is writing" not in line)]
        self.assertRegex(line, rf"lacks the privilege [a-zA-Z, ]*\b{action}\b.* on (database )?"
                               rf"{re.escape(where)}, which is needed .+; docs/security.md")

    def load_args(self, who, *words):
        return ["load", *who, "--work-dir", f"work-{next(self._counter)}", "--progress", "none", *words, self.source]

    def test_loading_needs_the_documented_role_and_no_more(self):
        self.start_anew(COLLECTION)
        outcome = self.shardload(*self.load_args(self.allow(documented_roles()["shardloadLoad"])))
        self.assertEqual(self.root[DATABASE][COLLECTION].count_documents({}), 1)
        self.assert_named(outcome, "collStats", "mot.tests")

    def load_into_one_made_anew(self, who):
        """Loads; then the collection is dropped and made anew, so that a load removes the sources of the registry."""
        self.shardload(*self.load_args(who))
        self.root[DATABASE].drop_collection(COLLECTION)
        self.root[DATABASE].create_collection(COLLECTION)

    def test_a_collection_made_anew_is_loaded_with_the_documented_role(self):
        """The load lacked a privilege after another program had dropped the collection."""
        self.start_anew(COLLECTION)
        who = self.allow(documented_roles()["shardloadLoad"])
        self.load_into_one_made_anew(who)
        self.shardload(*self.load_args(who))
        self.assertEqual(self.root[DATABASE][COLLECTION].count_documents({}), 1)

    def test_each_missing_privilege_of_loading_is_named(self):
        role = documented_roles()["shardloadLoad"]
        for less, action, where in self.each_one_missing(role):
            with self.subTest(action=action, where=where):
                self.start_anew(COLLECTION)
                if action == "remove":
                    self.load_into_one_made_anew(self.allow({**role, "createRole": "all"}))
                outcome = self.shardload(*self.load_args(self.allow(less)), code=EXIT_CLUSTER)
                self.assert_named(outcome, action, where)

    def test_verification_only_reads(self):
        role = documented_roles()["shardloadLoad"]
        self.shardload(*self.load_args(self.allow(role)))
        for privilege in role["privileges"]:
            privilege["actions"] = [a for a in privilege["actions"] if a == "find"]
        role["privileges"] = [p for p in role["privileges"] if p["actions"]]
        who = self.allow({**role, "createRole": "reader"})
        self.shardload("verify", *who, "--content", self.source)

    def test_creating_and_dropping_need_the_documented_role(self):
        roles = documented_roles()
        who = self.allow(roles["shardloadLoad"], roles["shardloadPrepare"])
        for _ in range(2):
            outcome = self.shardload(*self.load_args(
                who, "--drop", *self.clustered, "--compressor", "zlib", "--index", '{"v": 1}'))
            self.assertNotIn("lacks the privilege", outcome.text if self.by_uuid else "".join(
                line for line in outcome.text.splitlines() if "cannot check whether" not in line))
        self.assertIn("v_1", self.root[DATABASE][COLLECTION].index_information())

    def test_each_missing_privilege_of_creating_and_dropping_is_named(self):
        roles = documented_roles()
        words = {"dropCollection": ["--drop"], "createIndex": ["--index", '{"v": 1}'],
                 "listIndexes": ["--index", '{"v": 1}'],
                 "collStats": ["--compressor", "zlib"]}
        for less, action, where in self.each_one_missing(roles["shardloadPrepare"]):
            with self.subTest(action=action, where=where):
                self.start_anew(COLLECTION, COLLECTION + ".sources")
                who = self.allow(roles["shardloadLoad"], less)
                outcome = self.shardload(*self.load_args(who, *words[action]), code=EXIT_CLUSTER)
                self.assert_named(outcome, action, where)

    def test_a_trial_is_not_begun_by_a_user_who_may_not_drop(self):
        roles = documented_roles()
        less = copy.deepcopy(roles["shardloadPrepare"])
        for privilege in less["privileges"]:
            privilege["actions"] = [action for action in privilege["actions"] if action != "dropCollection"]
        less["privileges"] = [privilege for privilege in less["privileges"] if privilege["actions"]]
        self.start_anew()
        who = self.allow(roles["shardloadLoad"], less)
        before = self.root[DATABASE].list_collection_names()
        for number, (command, *words) in enumerate((("reload", "--suite", "mot", "--sample", "50%"), ("tune",))):
            self.shardload(command, *who, "--work-dir", f"w{number}", *words, self.source, code=EXIT_CLUSTER,
                           message=("could not be removed in the end", "dropCollection"))
            self.assertEqual(self.root[DATABASE].list_collection_names(), before)

    def test_the_server_accepts_the_roles_for_sharded_clusters(self):
        roles = documented_roles()
        self.allow(*(roles[name] for name in ("shardloadLoad", "shardloadPrepare", "shardloadSharded")))
        self.start_anew()
        self.allow(roles["shardloadShard"])

    def test_queries_need_the_documented_role(self):
        role = documented_roles()["shardquery"]
        document = {"_id": 1, "y": "NT", "r": "P", "k": "FORD"}
        self.root[DATABASE][COLLECTION].insert_one(document)
        words = ["run", "--repeat", "1", "--query", "makes", "--explain"]
        outcome = self.run_program("shardquery", *words, *self.allow(role), "mot")
        self.assertEqual((outcome.code, outcome.err), (EXIT_OK, ""))
        for less, action, where in self.each_one_missing(role):
            with self.subTest(action=action):
                self.start_anew()
                self.root[DATABASE][COLLECTION].insert_one(document)
                outcome = self.run_program("shardquery", *words, *self.allow(less), "mot")
                self.assertEqual(outcome.code, EXIT_OK if action == "collStats" else EXIT_CLUSTER)
                self.assert_named(outcome, action, where)

    def test_commands_on_a_database_need_the_documented_privileges(self):
        """doctor --write, plan, restore, tune and reload; a privilege that is missing is named."""
        roles = documented_roles()
        load = {action for name in ("shardloadLoad", "shardloadPrepare") for privilege in roles[name]["privileges"]
                for action in privilege["actions"]}
        index = {"v": 2, "key": {"n": 1}, "name": "n"}
        dump = making.folder(self.scratch / "dump", [
            making.Namespace(DATABASE, COLLECTION, [{"_id": 1, "n": 1}], indexes=[index])])
        for command, actions, some, *words in (
                ("doctor", {"insert", "dropCollection"}, ["insert", "dropCollection"], "--write"),
                ("plan", {"find", "listCollections"}, ["find", "listCollections"], self.source),
                ("restore", load | {"collMod", "listIndexes"}, ["createIndex", "find", "insert"], dump),
                ("tune", load, [], "--search", "grid", "--trial-bytes", "1MiB", self.source),
                ("reload", load, [], "--suite", "mot", "--sample", "50%", "--sample-runs", 2, self.source)):
            for missing in ("", *some):
                with self.subTest(command=command, missing=missing):
                    self.start_anew(COLLECTION)
                    who = self.allow({"createRole": "wide", "roles": [], "privileges": [
                        {"resource": {"db": DATABASE, "collection": ""}, "actions": sorted(actions - {missing})}]})
                    folder = ["--work-dir", f"work-{next(self._counter)}"] if command not in ("doctor", "plan") else []
                    outcome = self.run_program("shardload", command, *who[:-2 if command == "restore" else None],
                                               *folder, *words)
                    if command == "doctor":
                        self.assertEqual("ok       inserts" in outcome.out, not missing, outcome.text)
                    else:
                        self.assertEqual(outcome.code, EXIT_CLUSTER if missing else EXIT_OK, outcome.text)
                    if missing:
                        self.assertRegex(outcome.text, rf"lacks\s+the\s+privilege\s+{missing}\b")
                    elif command != "doctor":
                        self.assertEqual(re.findall(r"privilege (?!dbStats|inprog).*", outcome.text), [])

    def test_comparing_compressors_needs_the_documented_role(self):
        roles = documented_roles()
        actions = {action for name in ("shardloadLoad", "shardloadPrepare") for privilege in roles[name]["privileges"]
                   for action in privilege["actions"]}
        self.root.admin.command(roles["shardloadFlush"])
        for inherited, warned in ([], ["fsync"]), (["shardloadFlush"], []):
            who = self.allow({"createRole": f"wide{len(inherited)}", "roles": inherited, "privileges": [
                {"resource": {"db": DATABASE, "collection": ""}, "actions": sorted(actions)}]})
            outcome = self.shardload("tune", *who, "--search", "grid", "--trial-bytes", "1MiB", "--try-compressors",
                                     "none,zlib", "--work-dir", f"work-{len(inherited)}", self.source)
            found = re.findall(r"may be out of date: .*lacks\s+the\s+privilege (\w+)", outcome.text)
            self.assertEqual(found[:1], warned)

    def test_without_a_user_the_message_asks_for_one(self):
        outcome = self.shardload(*self.load_args(
            ["--uri", self.server.uri, "-d", DATABASE, "-c", COLLECTION]), code=EXIT_CLUSTER)
        self.assertIn("the server requires authentication; give --username", outcome.err)

    def test_users_with_read_write_and_with_the_documented_role_load(self):
        self.root.admin.command("createUser", "rw", pwd=PASSWORD, roles=[{"role": "readWrite", "db": DATABASE}])
        who = ["--uri", self.server.uri, "-u", "rw", "-p", PASSWORD, "-d", DATABASE, "-c", COLLECTION]
        self.shardload(*self.load_args(who))
        self.shardload("verify", *who, "--content", self.source)


class RealCluster(support.Case):
    """A real mongos with users: the project's router has none."""

    def test_users_with_read_write_and_with_the_documented_role_load(self):
        if os.environ.get(servers.PROGRAMS_USED) != "mongos":
            self.skipTest("needs --servers mongos")
        key = self.file("key", "a key for the tests alone")
        key.chmod(0o600)
        open_to_all, programs = self.file("transition", "--transitionToAuth"), []
        for name, more in (("mongos", ""), ("mongod", f"$(cat {open_to_all})")):
            programs += [f"--{name}", self.file(name, f'#!/bin/sh\n[ "$1" = --version ] || set -- "$@" --keyFile {key} '
                                                      f'{more}\nexec {os.environ["SHARDLOAD_" + name.upper()]} "$@"\n')]
            programs[-1].chmod(0o700)
        cluster = servers.Servers(self.scratch / "cluster", "--shards", 2, *programs, *servers.SAVING)
        self.addCleanup(cluster.down)
        secure_servers.first_user(cluster.uri)
        with secure_servers.as_root(cluster.uri) as root:
            root.admin.command("createUser", "rw", pwd=PASSWORD, roles=[{"role": "readWrite", "db": DATABASE}])
            who = ["--uri", cluster.uri, "-u", "rw", "-p", PASSWORD, "-d", DATABASE, "-c", COLLECTION]
            source = self.file("t.txt", support.mot_text(range(1, 500)))
            self.shardload("load", *who, "--work-dir", self.scratch / "work", "--progress", "none", source,
                           message=("the shards are not known: ", "lacks the privilege find on config.shards"))
            self.shardload("verify", *who, "--content", source)
            self.assertEqual(root[DATABASE][COLLECTION].count_documents({}), 499)
            self.assertEqual(root.admin.command("balancerStatus")["mode"], "full")
            roles = documented_roles()
            for name in ("shardloadLoad", "shardloadPrepare", "shardloadSharded"):
                root.admin.command(roles[name])
            root.admin.command("createUser", "sharded", pwd=PASSWORD, roles=["shardloadSharded"])
            who[3] = "sharded"
            outcome = self.shardload("load", *who, "--work-dir", self.scratch / "sharded", "--progress", "none",
                                     "--drop", "--index", '{"v": 1}', source)
            lacking = re.findall("lacks the privilege.*", outcome.text)     # the one for servers before 6.0
            self.assertEqual(len(lacking), 1, outcome.text)
            self.assertIn("(privilege inprog", lacking[0])
            self.assertEqual(root.config.collections.find_one({"_id": f"{DATABASE}.{COLLECTION}"})["key"], {"_id": 1})
            self.assertEqual(root[DATABASE][COLLECTION].count_documents({}), 499)
            self.assertEqual(root.admin.command("balancerStatus")["mode"], "full")
            shards = [name for name in cluster.names() if name.startswith("s")]
            for name in shards:     # users on the shards; then these require users, too
                with support.pymongo.MongoClient(port=cluster.port(name), directConnection=True) as shard:
                    shard.admin.command(roles["shardloadShard"])
                    shard.admin.command("createUser", "sharded", pwd=PASSWORD, roles=["shardloadShard"])
                    shard.admin.command("createUser", "root", pwd=secure_servers.ROOT_PASSWORD, roles=["root"],
                                        writeConcern={"j": True})
                cluster.kill(name)
            open_to_all.write_text("")
            cluster.start_again()
            words = ["load", *who, "--progress", "none", "--route", "direct", "--again", "--drop", source]
            outcome = self.shardload(*words, "--work-dir", self.scratch / "direct")
            self.assertEqual(re.findall("lacks the privilege (?!listCollections on|.*inprog).*", outcome.text), [])
            self.assertEqual(root[DATABASE][COLLECTION].count_documents({}), 499)
            for missing in ("insert", "find"):
                for name in shards:
                    with secure_servers.as_root(f"mongodb://127.0.0.1:{cluster.port(name)}") as shard:
                        shard.admin.command("updateRole", "shardloadShard", privileges=[
                            {**each, "actions": sorted({*each["actions"], "dbStats"} - {missing})}
                            for each in roles["shardloadShard"]["privileges"]])
                self.shardload(*words, "--work-dir", self.scratch / missing, code=EXIT_CLUSTER,
                               message=f"lacks the privilege {missing} on")
