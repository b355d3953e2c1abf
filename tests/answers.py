#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the answers to the queries of the built-in suites mot and isd from the source files, with the
independent readers of the tests, for --answers. Files of the tests and of tools/demo have their default
options: short names, no missing values.

usage: answers.py mot|isd FILE...          prints JSON; a folder stands for its files
"""
import datetime
import json
import math
import pathlib
import sys
from collections import defaultdict

import isd_reader
import mot_reader


def percent(part, whole):
    """Divides before it multiplies, like the queries."""
    return 100 * (part / whole)


def grouped(documents, key):
    groups = defaultdict(list)
    for document in documents:
        groups[key(document)].append(document)
    return groups


# ---- MOT test results ----

def green_ness(tests):
    bands = defaultdict(lambda: [0, 0])
    for test in tests:
        size = test.get("e", 0)
        band = 1 + sum(size > end for end in (1000, 1200, 1600, 2000, 2500, 3500))
        band *= 1.5 if test["f"] in ("D", "DI") else 1
        bands[band][0] += 1
        bands[band][1] += test.get("m", 0)
    return [{"_id": band, "count": count, "miles": miles} for band, (count, miles) in sorted(bands.items())]


def first_tests_of_cars(tests):
    return [test for test in tests if test["c"] == 4 and test["y"] in ("N", "NT")]


def pass_rate_by_age(tests):
    dated = [test for test in first_tests_of_cars(tests) if "i" in test and "d" in test]
    result = []
    for age, group in sorted(grouped(dated, lambda test: test["d"].year - test["i"].year).items()):
        passed = sum(test["r"] in ("P", "PRS") for test in group)
        result.append({"_id": age, "tests": len(group), "passed": passed, "passRate": percent(passed, len(group))})
    return result


def makes(tests):
    result = []
    for make, group in grouped(tests, lambda test: test["k"]).items():
        miles = [test["m"] for test in group if "m" in test]
        result.append({"_id": make, "tests": len(group), "meanMiles": sum(miles) / len(miles) if miles else None,
                       "failRate": percent(sum(test["r"] == "F" for test in group), len(group))})
    return sorted(result, key=lambda one: (-one["tests"], one["_id"].encode()))[:20]


def worst_models(tests):
    result = []
    for (make, model), group in grouped(first_tests_of_cars(tests), lambda test: (test["k"], test["o"])).items():
        if len(group) >= 100:
            result.append({"_id": {"make": make, "model": model}, "tests": len(group),
                           "failRate": percent(sum(test["r"] == "F" for test in group), len(group))})
    return sorted(result, key=lambda one: (-one["failRate"], -one["tests"], one["_id"]["make"].encode(),
                                           one["_id"]["model"].encode()))[:20]


# ---- ISD weather records ----

GOOD = set("0145")          # the quality of values that passed the publisher's checks
CENTRE = 30.3, -97.7        # of near-point


def value_at(record, *path):
    for key in path:
        record = record.get(key, {})
    return None if record == {} else record


def temperatures(records):
    """(record, tenths of a degree) of the records with a good temperature."""
    for record in records:
        degrees = value_at(record, "airTemperature", "value")
        if degrees is not None and value_at(record, "airTemperature", "quality") in GOOD:
            yield record, round(10 * degrees)


def temperature_swing(records):
    days, best = defaultdict(list), {}
    for record, tenths in temperatures(records):
        days[record["st"], record["ts"].replace(hour=0, minute=0)].append(tenths)
    for (st, day), values in sorted(days.items()):
        swing = max(values) - min(values)
        if len(values) >= 2 and (st not in best or swing > best[st][0]):
            best[st] = swing, day
    rows = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    return [{"_id": st, "day": {"$date": day.isoformat() + "Z"}, "swing": swing / 10}
            for st, (swing, day) in rows[:20]]


def has_snow(record):
    return any((
        any("70" <= group["condition"] <= "79" for group in record.get("presentWeatherObservationManual", ())
            if "condition" in group),
        any("70" <= group["condition"] <= "78" for group in record.get("presentWeatherObservation", ())
            if "condition" in group),
        any(group.get("precipitation") in ("03", "04") for group in record.get("presentWeatherObservationASOS", ())),
        (value_at(record, "snowDepth", "depth", "value") or 0) > 0))


def snow_stations(records):
    return [{"_id": st, "snow": sum(map(has_snow, group)), "documents": len(group)}
            for st, group in sorted(grouped(records, lambda record: record["st"]).items())]


def sky_by_hour(records):
    hours = defaultdict(list)
    for record in records:
        cover = value_at(record, "skyConditionObservation", "totalCoverage", "value")
        if cover is not None and "00" <= cover <= "08":
            hours[record["ts"].hour].append(int(cover))
    return [{"_id": hour, "observations": len(oktas), "meanOktas": sum(oktas) / len(oktas)}
            for hour, oktas in sorted(hours.items())]


def monthly_means(records):
    months = defaultdict(list)
    for record, tenths in temperatures(records):
        months[record["st"], record["ts"].year, record["ts"].month].append(tenths)
    return [{"_id": {"st": st, "year": year, "month": month}, "observations": len(values),
             "meanTemperature": sum(values) / len(values) / 10}
            for (st, year, month), values in sorted(months.items())[:500]]


def distance(one, other):
    """Kilometres, by the law of cosines."""
    (a, x), (b, y) = [tuple(map(math.radians, place)) for place in (one, other)]
    angle = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(x - y)
    return 6378.1 * math.acos(max(-1, min(1, angle)))


def near_point(records):
    near = [record for record in records
            if datetime.datetime(2014, 1, 1) <= record["ts"] < datetime.datetime(2014, 2, 1) and
            "position" in record and distance(record["position"]["coordinates"][::-1], CENTRE) <= 100]
    return [{"_id": None, "records": len(near), "stations": len({record["st"] for record in near})}] if near else []


def strongest_wind(records):
    decades = defaultdict(list)
    for record in records:
        speed = value_at(record, "wind", "speed", "rate")
        if speed is not None and value_at(record, "wind", "speed", "quality") in GOOD:
            decades[record["ts"].year // 10 * 10].append(speed)
    return [{"_id": decade, "speed": max(speeds), "records": len(speeds)}
            for decade, speeds in sorted(decades.items())]


SUITES = {
    "mot": (mot_reader.read, {"green-ness": green_ness, "pass-rate-by-age": pass_rate_by_age, "makes": makes,
                              "worst-models": worst_models}),
    "isd": (isd_reader.read, {"temperature-swing": temperature_swing, "snow-stations": snow_stations,
                              "sky-by-hour": sky_by_hour, "monthly-means": monthly_means,
                              "near-point": near_point, "strongest-wind": strongest_wind}),
}


def of(suite, paths):
    """The content of a file for --answers."""
    read, queries = SUITES[suite]
    documents = [document for path in paths for document in read(path).documents]
    return {"answers": {name: query(documents) for name, query in queries.items()}}


def main(suite, *names):
    paths = [path for name in map(pathlib.Path, names)
             for path in (sorted(name.iterdir()) if name.is_dir() else [name])]
    json.dump(of(suite, paths), sys.stdout, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
