# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets: a few small generated inputs for each target.

    python3 seeds.py [--long] FOLDER        FOLDER/fuzz_mot/0, FOLDER/fuzz_mot/1 ...

With --long, writes inputs of up to several MiB, larger than a block of a source, for the targets that
have them. An input that made a target fail belongs here, too, beside a unit test for the error.
"""
import bz2
import gzip
import io
import json
import lzma
import pathlib
import random
import struct
import sys
import tarfile
import zipfile
import zlib

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[depth]) for depth in (0, 1)]
import deflate64_making
import record_maker
import seeds_bson

MOT_HEADER = ("test_id|vehicle_id|test_date|test_class_id|test_type|test_result|test_mileage|"
              "postcode_area|make|model|colour|fuel_type|cylinder_capacity|first_use_date")
MOT_ROW = "7|9|2015-11-20|4|NT|P|49828|UB|FORD|KA \xe9 {}|RED|PE|1242|2005-10-17"
QUOTED_ROW = '7,9,2021-11-20,4,"NT","P",49828,"UB","FORD","KA \\"S\\", {}","RED","PE",,2005-10-17'
ITEMS = "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n1|8394|A|7|\n2|83|F||D\n"

SCHEMA = """name: fuzz
columns:
  - {name: i, type: int, minimum: -9}
  - {name: d, type: double}
  - {name: t, type: datetime, missing: [x]}
  - {name: c, type: code, missing: ["0"]}
  - {name: f, type: flag, "yes": Y, "no": N}
  - {name: s, spill: true, missing: [n/a]}
"""
SCHEMA_WITHOUT_HEADER = """name: bare
kind: things
delimiter: tab
header: false
quotes: true
trim: true
field_counts: [2, 3]
columns: [{name: a, short: b, required: true, type: date}, {name: e, aliases: [g]}, {name: h}]
"""

STATUS = {"statusVersion": 1, "command": "load", "target": "a.b", "state": "running", "phase": "load",
          "heartbeatMilliseconds": 1, "process": {"pid": 1, "host": "h", "started": 5}, "message": "a\nb",
          "workDirectory": "w", "resumable": True, "resumeWorkDirectory": "a b", "limit": {"documentsPerSecond": 9},
          "load": {"seconds": 3, "share": 0.5, "secondsLeft": 4, "sourceBytesTotal": 9, "documents": 7, "retries": 1,
                   "silent": {"shard": "s", "seconds": 2}, "waitsFor": {"cluster": 0.5, "source": 0.25}}}

HOUR = "1901 01 01 06   -78  -103 10200   270   159     8    12    -1\n"
TABLE_HEADER = ('"STATION","DATE","SOURCE","LATITUDE","LONGITUDE","ELEVATION","NAME","REPORT_TYPE",'
                '"CALL_SIGN","QUALITY_CONTROL","WND","CIG","VIS","TMP","DEW","SLP","AA1","GE1",'
                '"REM","EQD"\n')
TABLE_ROW = ('"01001099999","1988-01-31T12:00:00","4","70.933","-8.667","9.0","JAN MAYEN, NO",'
             '"FM-12","ENJA ","V020","318,1,N,0061,1","00450,1,C,N","010000,1,V,5","-0067,1",'
             '"-0080,1","10123,1","06,0012,9,1","9,AGL   ,+99999,+00300","SYN003abc",'
             '"Q01  00420APOSP "\n')



def deflate64(*shapes):
    """Blocks of the kinds, of literals and matches."""
    bits = deflate64_making.Bits()
    deflate64_making.stored(bits, b"a,b\n1,2\n")
    for shape in shapes:
        symbols = [*b"3,4\n", (3, 1), (258, 2), (20, 12, True), (65538, 7), (5, 65536), 10]
        deflate64_making.block(bits, symbols, shape=shape)
    deflate64_making.stored(bits, b"", last=True)
    return bits.bytes()


DEFLATE64 = [deflate64(None), deflate64(deflate64_making.balanced),
             deflate64(deflate64_making.skewed, None)]

JSON_PLAIN = ('{"a":1,"_id":"x","b":[1.5e3,-0,9223372036854775807,true,null,"\\u00e9\\ud83d\\ude00"],'
              '"c":{"\u20ac":NaN,"d":{}}}')
JSON_TYPES = [
    '{"a":{"$oid":"5f0a00000000bcdeff000001"},"b":{"$numberInt":"5"},"c":{"$numberLong":"-5"}}',
    '{"a":{"$numberDouble":"-Infinity"},"b":{"$numberDecimal":"1.50E+3"},"c":{"$minKey":1}}',
    '{"a":{"$date":"2015-12-31T23:59:59.999+0100"},"b":{"$date":{"$numberLong":"5"}},"c":{"$date":1}}',
    '{"a":{"$binary":{"base64":"AQIDBA==","subType":"02"}},"b":{"$binary":"AQID","$type":"00"}}',
    '{"a":{"$uuid":"c8edabc3-f738-4ca3-b68d-ab92a91478a3"},"b":{"$type":"05","$binary":""}}',
    '{"a":{"$regularExpression":{"pattern":"^a","options":"xi"}},"b":{"$regex":"a","$options":"i"}}',
    '{"a":{"$code":"f","$scope":{"x":1}},"b":{"$scope":{},"$code":""},"c":{"$symbol":"s"}}',
    '{"a":{"$dbPointer":{"$ref":"c","$id":{"$oid":"5f0a00000000bcdeff000001"}}},"b":{"$type":2}}',
    '{"a":{"$timestamp":{"t":1,"i":2}},"b":{"$undefined":true},"c":{"$maxKey":1}}',
    '{a:ISODate("2015-12-31T23:59:59Z"),\'b\':NumberLong(-5),$c:/a\\/"}/i,d:new Date(.5),e:BinData(0,"AQID")}',
    "{_id:ObjectId('5f0a00000000bcdeff000001'),a:'it\\'s \"}',b:[Timestamp(1,2),DBRef('c',0x1F),MinKey,undefined]}",
]

SUITE = """name: fuzz
description: small
defaults: {repeat: 2}
queries:
  - name: one
    pipeline: '[{"$match": {"a": {"$gte": 1.5}}}, {"$group": {"_id": "$b", "n": {"$sum": 1}}}]'
    expected: '[{"_id": "x", "n": 3}]'
"""
MODEL = b"""title: t
about: a
answer: load
inputs: {documents: {value: 1G, from: published}, rate: {value: 85k, low: 1, high: 90k, from: fitted,
  note: x, unit: documents/s}, shards: {value: 3, from: assumed}}
results: {a: {work: [documents], rate: [2], unit: documents}, b: {sum: [3, documents]},
  load: {sum: [1], slowest: [a, b], work: [a], copies: [3, 0.5], rate: [rate], units: [shards, 0.1, 0.01],
  unit: s, fitted: 7, note: n}}
points: [{name: p, set: {shards: 4}, published: {load: 9}, fitted: {a: 3}}]
"""
RUN_RECORD = b"""{"command": "load", "exitCode": 0, "options": {"sink": "cluster", "index": ["{}"],
 "no-verify": "false"}, "accounting": {"inserted": 100, "bsonBytes": 9000},
 "distribution": {"steps": 2, "seconds": 0.5}, "phases": [{"name": "load", "seconds": 5},
 {"name": "prepare", "seconds": 1}, {"name": "indexes", "seconds": 1}, {"name": "verify",
 "seconds": 1}], "series": [{"seconds": 1, "documents": 10, "bsonBytes": 900}, {"seconds": 2,
 "documents": 30, "bsonBytes": 2000}, {"seconds": 3, "documents": 50, "bsonBytes": 4000},
 {"seconds": 4, "documents": 80, "bsonBytes": 7000}, {"seconds": 5, "documents": 100,
 "bsonBytes": 9000}]}"""

REPORT = """{"program": "shardquery", "command": "run", "queries": [{"suite": "s", "name": "q", "documents": 9,
"pipeline": [{"$match": {}}], "timingsMs": [1.5, 1.25, 2, 1.75, 1.5]}, {"suite": "s", "name": "u", "mode": "open loop",
"clients": 8, "latencyMs": {"p50": 1.5}, "overTime": {"slotSeconds": 1, "succeeded": [1, 2], "maxMs": [2]},
"latencyCurve": [[0.5, 1.5]], "replicationLag": [{"member": "a:1", "maxSeconds": 1}]}]}"""


def latin(text):
    return text.encode("latin-1")


def mot(options, *lines):
    return bytes([options]) + latin("\n".join(lines) + "\n")


def mot_rows(rows):
    """Rows with a header; they differ, so that they compress well but not extremely."""
    return latin("\n".join([MOT_HEADER] + [MOT_ROW.format(n * 7919) for n in range(rows)]))


def zipped(*entries, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def tarred(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def message(document, kind=2013):
    """A message of the wire protocol whose only section is `document`."""
    body = struct.pack("<I", 0) + b"\0" + document
    return struct.pack("<iiii", 16 + len(body), 1, 0, kind) + body


def journal(*records):
    """A journal of (type, payload) records after its first record, in the layout of
    src/ledger/journal.h."""
    text = b""
    for kind, payload in [(3, b"shardloadjournal\2\0\0\0"), *records]:
        head = struct.pack("<II", len(payload), kind)
        text += head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload
    return text


SEEDS = {
    "fuzz_bson": seeds_bson.DUMPS,
    "fuzz_dump_archive": seeds_bson.ARCHIVES,
    "fuzz_inflate64": [b"\0\0" + DEFLATE64[0], b"\7\7" + DEFLATE64[1], b"\xff\1" + DEFLATE64[2]],
    "fuzz_mot": [
        mot(0, MOT_HEADER, *[MOT_ROW.format(n) for n in range(3)]),
        mot(2, MOT_HEADER, MOT_ROW.format("|x||"), "", MOT_HEADER, "1|2|3"),
        mot(1, MOT_HEADER.replace("|", ","), QUOTED_ROW.format(1), QUOTED_ROW.format('"')),
        mot(4, MOT_ROW.format(1).replace("2005-10-17", "NULL"), MOT_ROW.format(2)),
        bytes([0]) + latin(ITEMS),
        bytes([8]) + b"\xef\xbb\xbf" + latin(ITEMS.replace("\n", "\r\n")),
        mot(0, "1|8394|A|N|N|N|D", "2|83|F|N|O|L|"),
    ],
    "fuzz_delimited": [
        b"\0" + SCHEMA.encode() + b"\0i|d|t|c|f|s\n"
        b"1|2.5|2020-01-01 10:00:00|0|Y|a\n-9|1e9|x|7|N|n/a\n",
        b"\0" + SCHEMA_WITHOUT_HEADER.encode() + b"\0" b'2020-02-29\t"a ""b"\t\n2021-02-29\t"\\"\n',
        b"\x02\0" + b'name,"two words","",x\n1,"a, ""b""",\xe9,\\\n"x\n',
        b"\x04\0" + b"a;b\n" + b" 1 ; 2 \n" * 5,
        b"\x48\0" + b"i,d,f,t,z,m,u,x,e\n1,1.50,true,2016-01-15 10:00:00,2016-01-15T10:00:00Z,"
        b"15-Jan-2016 10:37:31.084,1/31/2016,00501,-\n-9,6.6666669845581055,false,2016-01-15,NA,-,"
        b"2/1/2016,+49,\n",
        b"\x48\0" + b"Title\n\n1.5;9223372036854775808;1E5\n2;5;9.019607543945313\n",
        b"\x68\0" + b"a.b,a.c[0],a.c[1],x y,,x y\n1,2,3\n",
        b"\x58\0" + b"id   name one  lat\n1    x y       2.5\n",
        b"\0\0" + b"1\ta\\tb\t\\N\tt\n2\t\\\\N\t\t\\x41\\101\n3\tc\\\nd\t{1}\tf\n\\.\n",
        b"\x40\0" + b'1,"a\\\"b\\\nc",\\N,-1.5\n2,"","\\0",1e300\n',
        b"\x40\0" + b'id,"",b\n1,"",NaN\n2,,12.5\n3, "x, y" ,1.234567890123456789\n',
        b"\x40\0" + b"a;b\n1.234,5;1,234.50\n12,5;12\n",
        b"\x80\0" + b'a,b,"c"\n"1","x\ny, z",""\n2,5" disk,"a ""b"""\n"3" ,"4\r\n",\xff\n"",,"open',
        b"\xc8\0" + b'n,t,d\n"1.5","2016-01-15T10:00:00",""\n-.25,"2016-02-29T23:59:59","2016-02-29"\n',
    ],
    "fuzz_isd": [
        b"\0~ADDAA1060012" + b"91GE19AGL   +99999+00300REMSYN003abcEQDQ01  00420APOSP \n~\n",
        b"\x01~ADDMW1001\n~ADDZZ9junk\nrubbish\n~REMMET010METAR XX\n",
        b"\x02~ADDAA199999999AW1001AW2999REMAWY005a\xe9b\x00c\r\n",
    ],
    "fuzz_isd_lite": [
        b"\0\0" + HOUR.encode() * 3,
        b"\x01999999-14850-2010\0" + HOUR.replace("-78", "-9999").encode() + b"1901 13 01 06\n",
    ],
    "fuzz_isd_csv": [
        b"\0" + (TABLE_HEADER + TABLE_ROW * 2).encode(),
        b"\x02STATION,DATE,TMP,AA1,XX9\n01001099999,1988-01-31T12:00:00,\"-0067,1\",\"6,1\",zz\n",
    ],
    "fuzz_extjson": [bytes([choice]) + text.encode() for choice in (0, 4, 9, 254)
                     for text in (JSON_PLAIN, *JSON_TYPES)],
    "fuzz_json_format": [
        b'\3{"a":"1.5","b":"[1,{}]","c":{"d":"2020-01-01"},"e":["1","2"],"f":{"g":{"h":"ab"}},"st":"1,5","i":"AAA="}\n',
        b'\3{"a":"1","b":"1,\\"a\\":2"}\n{"b":"[],\\"_id\\":2","i":""}\n',
        b'\2{"a":[[["1"]],{"d":"x"}],"c":[{"d":"2020-01-01"}],"b":"nul"}'] + [b"\1" + text.encode() for text in (
        JSON_PLAIN + "\n" + "\r\n ".join(JSON_TYPES), JSON_PLAIN + "{}\ufeff".join(JSON_TYPES),
        "[\n " + ",\n".join(JSON_TYPES).replace(":", ":\n") + "\n]\n",
        JSON_PLAIN.replace(",", ",\n") + ' {"a":1,\n"a":2}{"b":"\\q"}', '{"a":\n1}x', "[{},]",
        '{"a":1,\\{"b":2},\n/x/} {"c":1}')],
    "fuzz_metadata": [
        b'\0{"options":{"capped":true,"size":{"$numberLong":"4096"},"validator":{"a":1}},'
        b'"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"key":{"a":-1},"name":"a"}],'
        b'"collectionName":"x","type":"collection"}',
        b'\0{"options":{"collation":{"locale":"de"},"autoIndexId":false},"indexes":[{}]}',
        b'\0{"options":{"viewOn":"t","pipeline":[]},"indexes":[]}',
        b"\1shop.orders: {key: {customer: 1, _id: hashed}}\na.b: {key: {n: 1}, unique: true}\n",
        b"\1a.b: &k {key: {n: 1}}\nc.d: *k\n",
    ],
    "fuzz_schema": [SCHEMA.encode(), SCHEMA_WITHOUT_HEADER.encode(), b"name: &a [*a]\n"],
    "fuzz_suite": [SUITE.encode()],
    "fuzz_capacity": [b"\x00" + MODEL, b"\x01machines=1..2k..3M", b"\x02" + RUN_RECORD],
    "fuzz_json": [b'{"st": 1, "ts": -1}',
                  b'[{"$date": "2020-01-01T00:00:00Z"}, 0.1, 1e308, "\\u00e9"]',
                  b'{"a": {"$numberLong": "5"}, "b": {"$oid": "0123456789abcdef01234567"}}'],
    "fuzz_report": [REPORT.encode() + b"\0" + REPORT.replace("1.25", "2.5").encode(),
                    REPORT.encode() + b'\0{"queries": [1]}'],
    "fuzz_record": [
        json.dumps(record, separators=(",", ":")).encode() + bytes([flags])
        for flags, record in enumerate([
            record_maker.load(3, 2), record_maker.load(2, 9, points=2), record_maker.load(0),
            record_maker.plan(), record_maker.load(1, 1, rejects=3, code=1), record_maker.reload(0.5),
            {**record_maker.tune(), "settings": record_maker.tune()["settings"][:6]},
            record_maker.model(), record_maker.load(1, 1),
            # Odd flags give the record twice: two loaders of one load.
            record_maker.load(2, 2, part="1/2"), record_maker.load(1, 1),
            record_maker.load(2, 2, **{"only-shards": "s0"}), *[json.loads(REPORT)] * 3])
    ] + [
        json.dumps(record).encode() + bytes([flags])
        for flags, record in [
            (64, record_maker.reload(0.5)), (65, record_maker.reload(0.5)), (64, record_maker.reload(1)),
            (128, STATUS), (129, STATUS), (128, {**STATUS, "state": "finished"}),
            (128, {**STATUS, "namespaces": {"count": 2, "running": [{"name": "a.b"}]}})]
    ],
    "fuzz_options": [
        b"db: x\nindex:\n  - '{\"a\": 1}'\nthreads: auto\nmax-rejects: 5%\n\0"
        b"-c\0t\0--batch-bytes=1MiB\0f.txt",
        b"sink: null\nprogress: json\n\0--shard-key\0{\"st\": \"hashed\"}\0-j2\0--drop\0f\0g",
        b"[a, b]\0--format\0mott\0--work-dri\0x",
    ],
    "fuzz_sql_dump": [
        b"--\n-- PostgreSQL database dump\n--\nCREATE TABLE public.t (a integer NOT NULL, \"b c\" numeric(3,1)[]);\n"
        b"COPY public.t (a, \"b c\") FROM stdin;\n1\t{1.5}\n\\.\nALTER TABLE ONLY t ADD CONSTRAINT k PRIMARY KEY (a);\n"
        b"-- PostgreSQL database dump complete\n",
        b"-- MySQL dump 8\nCREATE TABLE `t` (`a` int, `b` blob, PRIMARY KEY (`a`));\nDELIMITER ;;\nDELIMITER ;\n"
        b"INSERT INTO `t` VALUES (1,_binary '\\0\\'x'),(2,0xff);\n"
        b"INSERT INTO `t` VALUES (3,NULL);\n-- Dump completed\n",
        b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a, b);\n"
        b"INSERT INTO t VALUES(replace('a\\n','\\n',char(10)),unistr('\\u000a'));\n"
        b"CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; END;\nCOMMIT;\n",
        b"CREATE TABLE a (x int);\nCREATE TABLE b (x int);\nCOPY a (x) FROM stdin;\n1\n2\n\\.\nSELECT 1;\n"
        b"INSERT INTO b VALUES (1),(2);\nINSERT INTO b VALUES (3);\nINSERT INTO sqlite_sequence VALUES (1);\n"
        b"CREATE TABLE c (x int);\nINSERT INTO c VALUES (1);\nCREATE TABLE d (x int);\nCOPY d (x) FROM stdin;\n\\.\n",
    ],
    "fuzz_source": [
        mot_rows(20),
        deflate64_making.zip_of([("a.csv", b"a,b\n1,2\n" * 20, DEFLATE64[1]),
                                 ("b.csv", b"a,b\n1,2\n", None)]),
        gzip.compress(mot_rows(200), mtime=0),
        b"".join(gzip.compress(part, mtime=0) for part in (mot_rows(3), b"", mot_rows(2))),
        gzip.compress(mot_rows(200), mtime=0)[:-9],
        gzip.compress(mot_rows(9), mtime=0) + b"\0\0\0",
        gzip.compress(bytes(5 << 18), mtime=0),
        bz2.compress(mot_rows(9)),
        lzma.compress(mot_rows(9)),
        zipped(("a/x.csv", mot_rows(9)), ("../../y.csv", mot_rows(2)), ("__MACOSX/z", b"no")),
        zipped(("stored.txt", mot_rows(3)), method=zipfile.ZIP_STORED),
        tarred(("x.txt", mot_rows(9)), ("/y.gz", gzip.compress(mot_rows(5), mtime=0))),
        gzip.compress(tarred(("x.txt", mot_rows(4))), mtime=0),
        b"\n\n\nx\r\n\0" + b"y" * 3000,
        ("\ufeff" + "a,\u00e9\u20ac\U0001f697\n" * 9).encode("utf-16-le"),
        "\ufeffa\ud83d\nb\ude00".encode("utf-16-be", "surrogatepass") + b"\xd8",
    ],
    "fuzz_journal": [
        journal((1, b"\x10\0\0\0\x10begun\0\x01\0\0\0\0"), (2, bytes(184)), (2, b"\1" * 184)),
        journal((1, b"\x05\0\0\0\0"), (3, b"?")) + b"\0" * 7,
    ],
    "fuzz_wire": [message(b"\x10\0\0\0\x10ping\0\x01\0\0\0\0"),
                  message(b"\x05\0\0\0\0", 2004), b"\0" * 16],
    **seeds_bson.SEEDS,
}


def rows(count, row):
    """`count` lines by the template `row`, each with a different number."""
    return latin("\n".join(row.format(number * 7919) for number in range(count)) + "\n")


def aliased(before, text, count, after=""):
    """YAML: a list of that many aliases of a text."""
    return f"{before}[&b {text}{', *b' * count}]{after}\n".encode()


def long_seeds():
    """Texts of several blocks; some of them have a line that is longer than a block. Short YAML that is
    many gigabytes long when each of its aliases is replaced."""
    columns = "".join(f"\n- {{name: c{i}, type: text, missing: *w}}" for i in range(1000))
    mot_lines = rows(18000, MOT_ROW)
    wide = b'"' + b"x" * (3 << 19) + b'",2\n'
    generator = random.Random(1)
    noise = bytes(generator.randrange(33, 127) for _ in range(1 << 20))
    return {
        "fuzz_mot": [b"\0" + latin(MOT_HEADER) + b"\n" + mot_lines,
                     b"\2" + latin(MOT_HEADER.replace("|", ",")) + b"\n" +
                     rows(16000, QUOTED_ROW)],
        "fuzz_delimited": [b"\0\0name,b\n" + rows(60000, 'x{0},"a, {0}"') + wide,
                           b"\x80\0name,b\n" + rows(40000, '"{0}","a,\n{0}"') + wide,
                           b"\0" + SCHEMA.encode() + b"\0i|d|t|c|f|s\n" +
                           rows(40000, "1|{}.5|2020-01-01 10:00:00|0|Y|a")],
        "fuzz_schema": [aliased("name: x\nkind: t\ncolumns:\n- {name: c, type: text, missing: &w ", "x",
                                90000, "}" + columns)],
        "fuzz_options": [aliased("index: ", "x" * 500000, 100000)],
        "fuzz_suite": [aliased("name: x\nqueries: ", "x" * 500000, 100000)],
        "fuzz_capacity": [b"\0" + aliased("inputs: ", "x" * 500000, 100000)],
        "fuzz_isd": [b"\0" + b"~ADDAA106001291\n" * 8000],
        "fuzz_isd_lite": [b"\0\0" + HOUR.encode() * 20000],
        "fuzz_isd_csv": [b"\0" + (TABLE_HEADER + TABLE_ROW * 4000).encode()],
        "fuzz_source": [mot_lines, gzip.compress(mot_lines * 2, mtime=0), bz2.compress(mot_lines),
                        noise + b"\n" + noise * 2, gzip.compress(noise * 3, mtime=0),
                        zipped(("a.csv", mot_lines), ("b.csv", noise)),
                        tarred(("a.csv", mot_lines), ("b.gz", gzip.compress(mot_lines, mtime=0)))],
        "fuzz_sql_dump": [b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a);\nINSERT INTO t VALUES(" +
                          value + b");\nCOMMIT;\n" for value in (
                              b"replace(" * 200000, b"_a " * 200000, b"unistr('" + b"\\u0001" * 200000 + b"')",
                              b"replace('" + b"0" * 100000 + b"','0',char(10))")],
        **seeds_bson.LONG_SEEDS,
    }


def main(folder, seeds):
    for target, inputs in seeds.items():
        target_folder = pathlib.Path(folder) / target
        target_folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (target_folder / str(number)).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[-1], long_seeds() if "--long" in sys.argv else SEEDS)
