# SPDX-License-Identifier: Apache-2.0
"""Generates data from fixed seeds when a row first needs it, and keeps it for other rows."""
import json
import os
import random
import re
import shutil
from typing import NamedTuple

from .process import Failure, run

MOT_ROW = 86         # bytes of a record, approximately
GZIP_SHARE = 0.45    # maximum share of compressed bytes


class Data(NamedTuple):
    path: str
    records: int
    bytes: int  # of text, uncompressed


class DataSets:
    def __init__(self, folder, bin_folder):
        self.folder = folder
        self.bin = bin_folder
        self.generated = {}

    def mot(self, records, dialect="B", gzip=False, clean=False):
        """`clean`: without the irregularities of real files, on which other loaders fail."""
        self.need_room(records * MOT_ROW * (GZIP_SHARE if gzip else 1))
        more = ["--gzip", "--gzip-level", "1"] if gzip else []
        more += ["--dirt", "none"] if clean else []
        return self._generated(f"mot-{dialect}{'-clean' * clean}-{records}.txt", records, gzip,
                               "--dialect", dialect, *more)

    def isd(self, records):
        return self._generated(f"isd-{records}.txt", records, False, "--format", "isd")

    def csv(self, kind, size):
        """CSV text of about `size` bytes: "flights" (numbers, dates and words), "notes" (a third of
        the text in one field, not quoted) or "quoted" (the same, with a quoted line end instead of a
        blank in each such field)."""
        header, lines = csv_lines(kind)
        alike = csv_lines("notes")[1] if kind == "quoted" else lines  # as many records
        return self._repeated(f"{kind}-{size}.csv", size, "".join(lines), header,
                              least=len("".join(alike)))

    def sql(self, kind, size, form):
        """The records of csv(kind) in one of the forms of sql_text."""
        begin, text, end = sql_text(kind, form)
        return self._repeated(f"{kind}-{size}.{form}", size, text, begin, end,
                              least=len(sql_text(kind, "tab")[1]))  # as many records in all forms

    def json(self, kind, size):
        """JSON lines of about `size` bytes: "tweets" (nested, 1.5 KB, a third of the texts not
        ASCII) or "flat" (ten short fields, 170 bytes)."""
        return self._repeated(f"{kind}-{size}.json", size, "".join(json_lines(kind)))

    def _repeated(self, name, size, text, begin="", end="", least=0):
        """A file of about `size` bytes: a text of BASE records, repeated."""
        path = self.folder / name
        if path not in self.generated:
            self.need_room(size)
            times = -(-size // (least or len(text.encode())))
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(begin)
                for _ in range(times):
                    file.write(text)
                file.write(end)
            self.generated[path] = Data(str(path), times * BASE, os.path.getsize(path))
        return self.generated[path]

    def _generated(self, name, records, gzip, *options):
        path = self.folder / (name + (".gz" if gzip else ""))
        if path not in self.generated:
            run([self.bin / "shardload-datagen", "--rows", records, *options, path])
            self.generated[path] = Data(str(path), records,
                                   records * MOT_ROW if gzip else os.path.getsize(path))
        return self.generated[path]

    def dump(self, data):
        """A BSON file with the documents that a load of `data` stores, in the order of the text."""
        path = self.folder / (os.path.basename(data.path) + ".bson")
        if path not in self.generated:
            self.need_room(data.bytes * 6)
            run([self.bin / "shardload", "load", "--sink", f"bson:{path}", "--threads", 1,
                 "--progress", "none", "--work-dir", self.folder / "work-dump", data.path])
            shutil.rmtree(self.folder / "work-dump")
            self.generated[path] = str(path)
        return self.generated[path]

    def forget(self, data):
        """Deletes data that no other row uses."""
        for path in [path for path in self.generated if str(path).startswith(data.path)]:
            os.unlink(path)
            del self.generated[path]

    def need_room(self, needed):
        free = shutil.disk_usage(self.folder).free
        if free < needed * 1.1:
            raise Failure(f"{self.folder} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB "
                          "are needed: set TMPDIR to another folder, or use a smaller --scale")


WORDS = ["the", "rain", "in", "Spain", "falls", "mainly", "M\u00fcnchen",
         "\u65e5\u672c\u8a9e\u306e",
         "RT @user:", "http://t.co/abc", "\U0001f600", "it's", "#hash", '"q"\n']
BASE = 2000  # different records


def tweet(draw, number):
    text = " ".join(draw.choices(WORDS, k=15))
    user = {"id": draw.randrange(10 ** 10), "name": f"User {number}",
            "screen_name": f"user_{number}",
            "location": draw.choice(["", "London", "\u6771\u4eac", "S\u00e3o Paulo"]),
            "description": text, "url": None, "protected": False,
            "followers_count": draw.randrange(10000), "friends_count": draw.randrange(1000),
            "created_at": "Thu Jun 27 20:42:23 +0000 2013", "favourites_count": 5, "lang": "en",
            "utc_offset": None, "time_zone": None, "geo_enabled": False, "verified": False,
            "profile_background_image_url": "http://abs.example/images/themes/theme1/bg.png",
            "profile_image_url": f"http://pbs.example/profile_images/{number}/normal.jpeg",
            "profile_link_color": "0084B4", "default_profile": True, "following": False}
    point = [round(draw.uniform(-180, 180), 8), round(draw.uniform(-90, 90), 8)]
    return {"created_at": "Sun Aug 31 00:29:15 +0000 2014", "id": 505874924095815681 + number,
            "id_str": str(505874924095815681 + number), "text": text, "truncated": False,
            "source": '<a href="http://client.example/phone" rel="nofollow">Client</a>',
            "in_reply_to_status_id": None, "user": user, "geo": None,
            "coordinates": {"type": "Point", "coordinates": point}, "retweet_count": 3,
            "entities": {"hashtags": [{"text": "x", "indices": [3, 10]}], "urls": [],
                         "user_mentions": [{"screen_name": "u", "id": number, "indices": [0, 12]}]},
            "favorited": False, "lang": "ja"}


def flat(draw, number):
    return {"ts": f"2019-03-{1 + number % 28:02}T{number % 24:02}:00:00Z",
            "station": f"ST{number % 5000:05}", "temperature": round(draw.uniform(-20, 40), 1),
            "humidity": draw.randrange(100), "pressure": round(draw.uniform(950, 1050), 2),
            "wind": draw.randrange(40), "direction": draw.choice(["N", "NE", "E"]), "ok": True,
            "battery": 3.71, "count": number}


def json_lines(kind):
    draw = random.Random(1)
    make = {"tweets": tweet, "flat": flat}[kind]
    return [json.dumps(make(draw, number), separators=(",", ":"), ensure_ascii=False) + "\n"
            for number in range(BASE)]


def flight(draw, number):
    day = f"2015-{1 + number % 12:02}-{1 + number % 28:02}"
    delay = "" if number % 50 == 0 else f"{draw.uniform(-20, 300):.1f}"
    return (f"{day},{draw.choice(['AA', '9E', 'DL'])},{draw.randrange(1, 7000)},"
            f"N{draw.randrange(100, 999)}AA,{draw.choice(['JFK', 'LAX', 'ATL'])},"
            f"{draw.randrange(99999):05},{day}T{number % 24:02}:{number % 60:02}:00Z,{delay},"
            f"{draw.randrange(30, 700)},{draw.randrange(31, 4983)},{draw.uniform(-180, 180):.6f}\n")


def note(draw, number):
    return (f"{number},{draw.choice(['open', 'closed'])},{draw.randrange(10 ** 9)},"
            f"the rain in Spain falls mainly in{{}}the plain{{}},{draw.randrange(100)},"
            f"customer {draw.randrange(10 ** 6)},{draw.choice(['Rome', 'Bonn'])}\n")


def csv_lines(kind):
    draw = random.Random(1)
    if kind == "flights":
        return ("date,carrier,number,tail,origin,zip,departure,delay,minutes,distance,longitude\n",
                [flight(draw, number) for number in range(BASE)])
    lines = [note(draw, number) for number in range(BASE)]
    if kind == "quoted":
        lines = [line.format("\n", '"').replace("the rain", '"the rain') for line in lines]
    else:
        lines = [line.format(" ", "") for line in lines]
    return "number,state,code,text,count,customer,city\n", lines


# The columns of csv_lines, as CREATE TABLE.
COLUMNS = {"flights": "date date, carrier text, number int, tail text, origin text, zip text, "
                      "departure timestamp, delay double precision, minutes int, distance int, "
                      "longitude double precision",
           "notes": "number int, state text, code int, body text, count int, customer text, city text"}
PG_DUMP = """--
-- PostgreSQL database dump
--

CREATE TABLE t (%s);
COPY t FROM stdin;
"""


def sql_text(kind, form):
    """The records of csv_lines: what precedes them, their text, and what follows. `form`: "tab" (with
    a header), "copy" (COPY text), "pg_dump" (the same as a dump) or "mysqldump" (INSERT statements).
    In all but the first, the text of each note has an escaped line end."""
    header, lines = csv_lines(kind)
    if form == "tab":
        return header.replace(",", "\t"), "".join(lines).replace(",", "\t"), ""
    rows = [re.sub(r"T(..:..:..)Z", r" \1", line[:-1]).replace("in the", "in\\nthe").split(",")
            for line in lines]
    copy = "".join("\t".join(field or "\\N" for field in row) + "\n" for row in rows)
    if form == "copy":
        return "", copy, ""
    if form == "pg_dump":
        return PG_DUMP % COLUMNS[kind], copy, "\\.\n-- PostgreSQL database dump complete\n"
    marks = ["" if re.search(" (int|double)", column) else "'" for column in COLUMNS[kind].split(",")]
    values = [",".join(mark + field + mark if field else "NULL" for field, mark in zip(row, marks))
              for row in rows]
    return (f"-- MySQL dump 10.19\n\nCREATE TABLE `t` ({COLUMNS[kind]});\n",
            f"INSERT INTO `t` VALUES ({'),('.join(values)});\n", "-- Dump completed\n")
