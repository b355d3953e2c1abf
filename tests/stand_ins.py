# SPDX-License-Identifier: Apache-2.0
"""Stands in for the real sample files on machines that do not have them: files of the same names, in the
published layouts, with the irregularities that the real files showed. shardload-datagen draws the records;
what it does not write is made here. The content is generated, so the tests that compare published figures
skip (support.published).

usage: stand_ins.py SHARDLOAD_DATAGEN FOLDER
"""
import datetime
import gzip
import json
import pathlib
import random
import subprocess
import sys

import isd_reader

ROWS = {                 # MOT test results: name -> dialect of datagen, number of rows
    "test_result_2005_2013_original_style.txt": ("A", 13), "test_result_2005_2016_pipe_header.txt": ("B", 15),
    "test_result_2018_2020_comma.csv": ("D", 15), "test_result_2021_quoted.csv": ("E", 87),
    "test_result_2021_quoted_joined_a.csv": ("E", 50), "test_result_2022_2023_pipe.csv": ("F", 12),
}
PACKED = {               # stations: name -> number of records
    "010010-99999-1988": 2907, "010060-99999-2014": 2816, "011490-99999-1986.gz": 1328,
    "024130-99999-2016.gz": 2601, "035480-99999-1943-jul-sep": 2205, "066600-99999-2010-first50": 50,
    "720538-00164-2020.gz": 24252, "722540-13904-2014": 4237, "722874-93134-2007.gz": 11107,
    "725300-94846-1983-jan-jun": 4344,
}
SEVERAL = "1901.gz"      # a file of several stations, with all hours of one that ISD-Lite has too
LITE = {"029070-99999-1901": 1095, "318010-99999-2016": 2916}
TABLE_ROWS = 6843
PLACES = {b"066600": b"+47383+008567", b"722874": b"+34024-118291"}
HEADER = ("test_id,vehicle_id,test_date,test_class_id,test_type,test_result,test_mileage,postcode_area,make,"
          "model,colour,fuel_type,cylinder_capacity,first_use_date")
ITEM_HEADER = "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark"


def datagen(program, output, *options):
    subprocess.run([program, *map(str, options), output], check=True)


# ---- MOT ----

def comma_row(number, make, model, result="P", mileage="70211", capacity="1595", first="2001-06-17"):
    return f"21{number:08},17{number:08},2019-03-0{number % 9 + 1},4,NT,{result},{mileage},LN,{make},{model}," \
           f"GREEN,PE,{capacity},{first}"


def odd_texts():
    """The irregularities of published files, one name each."""
    commas = [comma_row(1, "YAMAHA", '"STREETZONE 50 2T 12\\""'), comma_row(2, "LAND ROVER", '"109\\""'),
              comma_row(3, "LAND ROVER", '"SERIES 1, 80 INCH"'), HEADER,
              comma_row(4, "HONDA", "JAZZ", result="ABR", mileage=""), comma_row(5, "RENAULT", "ZOE", capacity=""),
              comma_row(6, "FIAT", "PANDA", first=""), comma_row(7, "SMART", "FORTWO", mileage="999999"),
              comma_row(8, "ROVER", "75", mileage="1", first="2913-02-06"),
              comma_row(9, ".", "!ETRO", first="0001-01-01"), comma_row(10, "FSO", "ŻERAŃ")]
    pipe = "2100000020|1700000020|2016-09-30|4|NT|{}|{}|UB|{}|{}|SILVER|PE|3000|2005-10-17"
    pipes = [pipe.format("P", 31002, "BENTLEY", '"S1"  SALOON'), pipe.format("F", 101223, "TOYOTA", "Estima ||"),
             pipe.format("P", "", "AUDI", "A4"), pipe.format("P", 23459, "FORD", "UNCLASSIFIED")[:-15] + "||",
             pipe.format("P", 45120, "KIA", "CARENS LS \tMK2 (B7)")]
    return {"constructed_dirty_comma_backslash.csv": [HEADER, *commas],
            "constructed_dirty_pipe.csv": [HEADER.replace(",", "|"), *pipes],
            "dirty_verbatim_2015_extra_pipe.txt": [pipe.format("PRS", 49828, "TOYOTA", "Estima ||")]}


def lookup_texts():
    """Tables that belong to the test results, and tables of figures about them."""
    items = [f"21{n:08}|{8000 + 37 * n}|{'AFPM'[n % 4]}|{n + 7}|{'D' if n == 3 else ''}" for n in range(5)]
    details = "rfr_id|test_class_id|test_item_id|minor_item|rfr_desc|rfr_loc_marker|rfr_insp_manual_desc|" \
              "rfr_advisory_text|test_item_set_section_id"
    return {
        "test_item_2005_pipe_header.txt": [ITEM_HEADER, *items],
        "test_item_2023_pipe.csv": [ITEM_HEADER, *items],
        "item_detail_pre2018.txt": [details] + [
            f"{n // 6 + 4}|{n % 6 + 1}|{n // 60}|{'NY'[n % 2]}|part {n} worn|N|a part {n} is worn||{n % 9}"
            for n in range(10343)],
        "item_group_pre2018.txt": ["test_item_id|test_class_id|parent_id|test_item_set_section_id|item_name"] + [
            f"{n // 6}|{n % 6 + 1}|{n // 36}|{n // 36}|Assembly {n // 6}" for n in range(2134)],
        "mdr_fuel_types.csv": ["type_code|fuel_type"] + [f"{chr(65 + n)}F|Fuel {n}" for n in range(14)],
        "mdr_test_outcome.csv": ["result_code|result"] + [f"R{n}|Result {n}" for n in range(7)],
        "mdr_test_type.csv": ["type_code|test_type"] + [f"T{n}|Type {n}" for n in range(6)],
        "mdr_rfr_location_partial.csv": ["id|lateral|longitudinal|vertical", "1|||"] + [
            f"{n}|{'Nearside' if n % 2 else 'Offside'}|{'Front' if n % 3 else ''}|" for n in range(2, 10)],
        "rfr_catalogue_2021.csv": ["rfr_id|minor_item|rfr_deficiency_category|rfr_loc_marker|"
                                   "rfr_insp_manual_desc|item_path|items_2021"] + [
            f"{n}|{'NY'[n % 2]}|Major|||Brakes/Pads|{n * 31}" for n in range(30)],
        "make_model_reference_2016.csv": ["make,model"] + [f'"MAKER {n % 7}","{n}"' for n in range(90)],
        "freq_2021_colour.csv": ['"vehicle.colour","probability"'] + [f'"SHADE {n}",{n * 97}' for n in range(21)],
        "freq_2005_2013_mileage_10k.csv": ["mileage_rounded_10k,count,pass_rate_pct"] + [
            f"{n}0000,{(n + 1) * 997},{50 + n / 4}" for n in range(101)],
        "tests_2021_joined_a.jsonl": [json.dumps({
            "testid": n, "testdate": "2021-08-21T00:00:00.000Z", "testresult": "Passed", "testmileage": n * 977,
            "faileditems": [{"rfrid": 10019 + n, "location": {"longitudinal": "Front"}}]}) for n in range(50)],
    }


def write_mot(program, folder):
    folder.mkdir(parents=True)
    for seed, (name, (dialect, rows)) in enumerate(ROWS.items(), 1):
        datagen(program, folder / name, "--dialect", dialect, "--rows", rows, "--dirt", "none", "--seed", seed)
    for name, lines in {**odd_texts(), **lookup_texts()}.items():
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


# ---- ISD ----

def drawn_records(program, folder):
    """Generated records of American stations, and of the others."""
    datagen(program, folder / "drawn", "--format", "isd", "--rows", 40000, "--stations", 24, "--dirt", "none",
            "--seed", 4)
    american, others = [], []
    for line in (folder / "drawn").read_bytes().splitlines():
        (others if line[10:15] == b"99999" else american).append(line)
    (folder / "drawn").unlink()
    return american, others


def moved(line, station, moment):
    """The record as one of another station at another time."""
    place = PLACES.get(station[:6], line[28:41])
    return line[:4] + station + moment.strftime("%Y%m%d%H%M").encode() + line[27:28] + place + line[41:]


def station_records(lines, name, count):
    """`count` records of the station and year in the name, in the order of time."""
    station, year = (name[:6] + name[7:12]).encode(), int(name[13:17])
    hours = 365 * 24
    step = datetime.timedelta(hours=hours // count) if count <= hours else datetime.timedelta(hours=hours) / count
    begin = datetime.datetime(year, 1, 1)
    return [moved(lines[n * 7919 % len(lines)], station, begin + n * step) for n in range(count)]


def lite_line(line):
    """A packed record as an hour of ISD-Lite. 9s are missing values."""
    text = line.decode("latin-1")

    def number(first, last, missing):
        return -9999 if text[first:last] == missing else int(text[first:last])
    columns = [number(87, 92, "+9999"), number(93, 98, "+9999"), number(99, 104, "99999"),
               number(60, 63, "999"), number(65, 69, "9999"), -9999, -9999, -9999]
    return f"{text[15:19]} {text[19:21]} {text[21:23]} {text[23:25]}" + "".join(f"{n:6}" for n in columns) + "\n"


def comma_separated(raw, parts):
    cells, at = [], 0
    for part in parts:
        cells.append(raw[at:at + part.width])
        at += part.width
    return ",".join(cells)


def table_row(line, groups):
    """A packed record as {column: cell} of a global-hourly table."""
    text = line.decode("latin-1")
    row = {"STATION": text[4:15], "SOURCE": text[27], "REPORT_TYPE": text[41:46],
           "DATE": f"{text[15:19]}-{text[19:21]}-{text[21:23]}T{text[23:25]}:{text[25:27]}:00",
           "LATITUDE": str(int(text[28:34]) / 1000), "LONGITUDE": str(int(text[34:41]) / 1000),
           "ELEVATION": f"{int(text[46:51])}.0", "NAME": 'A "PLACE", US',
           "CALL_SIGN": text[51:56].rstrip(), "QUALITY_CONTROL": text[56:60]}
    at, packs = 60, list(isd_reader.PACKS.items())
    for (name, first), (_, behind) in zip(packs, packs[1:]):
        parts = isd_reader.MANDATORY[first:behind]
        row[name] = comma_separated(text[at:], parts)
        at += sum(part.width for part in parts)
    at = 108
    while text[105:108] == "ADD" and (group := groups.get(text[at:at + 3])):
        row[text[at:at + 3]] = comma_separated(text[at + 3:], group.fields)
        at += 3 + group.width
    at = 105 if at == 108 else at
    if text[at:at + 3] == "REM":
        end = at + 3
        while text[end:end + 3] in ("SYN", "AWY", "MET", "SOD", "SOM", "HPD"):
            end += 6 + int(text[end + 3:end + 6])
        row["REM"], at = text[at + 3:end], end
    if text[at:at + 3] == "EQD":
        row["EQD"] = text[at + 3:]
    return row


def quoted(cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def table_text(rows, groups):
    """Rows as the text of a table: the fixed columns, then those of the groups that occur."""
    found = {column for row in rows for column in row} & groups.keys()
    header = list(rows[0])[:16] + sorted(found) + ["REM", "EQD"]
    return "".join(map(quoted, [header, *([row.get(column, "") for column in header] for row in rows)]))


def write_isd(program, folder):
    (folder / "isd-lite").mkdir(parents=True)
    (folder / "global-hourly-csv").mkdir()
    american, others = drawn_records(program, folder)

    def write(name, text):
        data = gzip.compress(text, mtime=0) if name.endswith(".gz") else text
        (folder / name).write_bytes(data)
    for name, count in PACKED.items():
        lines = station_records(american if name.startswith("72") else others, name, count)
        write(name, b"\n".join(lines) + b"\n")
    several = []
    for name, count in LITE.items():
        lines = station_records(others, name, count)
        write(f"isd-lite/{name}.gz", "".join(map(lite_line, lines)).encode())
        if name.endswith(SEVERAL[:4]):
            several += lines
    for n in range(5):
        several += station_records(others, f"02{n}500-99999-{SEVERAL[:4]}", 1094)
    write(SEVERAL, b"\n".join(several) + b"\n")
    write("quoted-records-a.txt", b"\n".join(line[:4] + b"%011d" % (10 ** 10 + n) + line[15:] for n, line in
                                             enumerate(american[:8] + others[:7])) + b"\n")
    write("hadoop-book-sample-1949-1950.txt", b"\n".join(line[:105] for line in others[:5]))
    groups = isd_reader.table()
    rows = [table_row(line, groups) | {"LATITUDE": "0.0", "LONGITUDE": "0.0", "NAME": "WXPOD 7026, AF"}
            for line in station_records(american, "007026-99999-2017", TABLE_ROWS)]
    write("global-hourly-csv/00702699999-2017.csv.gz", table_text(rows, groups).encode("latin-1"))


# ---- a car's sensor log ----

SENSORS = ("GPS Time, Device Time, Longitude, Latitude,GPS Speed (Meters/second), Horizontal Dilution of Precision,"
           " Altitude, Bearing, G(x), G(y), G(z), G(calibrated),Engine Load(%),Engine Coolant Temperature(°C),"
           "Intake Manifold Pressure(kPa),Engine RPM(rpm),Mass Air Flow Rate(g/s),Timing Advance(°),"
           "Intake Air Temperature(°C),Fuel trim bank 1 sensor 1(%),Fuel trim bank 1 sensor 2(%),"
           "Fuel trim bank 1 sensor 3(%),Fuel trim bank 1 sensor 4(%)")


def write_sensors(folder):
    """With a byte order mark, blanks before names, and columns of which all values are missing."""
    folder.mkdir()
    dice, begin, rows = random.Random(23), datetime.datetime(2014, 9, 27, 13, 40), []
    for n in range(2832):
        moment = begin + datetime.timedelta(seconds=n, milliseconds=dice.randrange(1000))
        numbers = [repr(round(dice.uniform(-9, 900), dice.randrange(1, 9))) for _ in range(12)]
        rows.append(["-", f"{moment:%d-%b-%Y %H:%M:%S}.{moment.microsecond // 1000:03}", *["-"] * 6, *numbers[:8],
                     "-", *numbers[8:], "-", "-"])
    text = "\n".join([SENSORS, *map(",".join, rows)]) + "\n"
    (folder / "torque_23col_2014.csv").write_text(text, "utf-8-sig")


def make(program, folder):
    write_mot(program, folder / "mot")
    write_isd(program, folder / "isd")
    write_sensors(folder / "obd")


if __name__ == "__main__":
    make(sys.argv[1], pathlib.Path(sys.argv[2]))
