#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates records that depend only on the seed and their number: the data sets of tools/reproduce. They
repeat themselves as real data does. emails need the Python package bson, which the MongoDB driver contains.

usage: rows.py FORMAT --rows N [--seed N] OUTPUT
"""
import argparse
import datetime
import itertools
import pathlib
import sys

MASK = (1 << 64) - 1


class Words:
    """words.txt, the most frequent word first; a word is chosen by Zipf's law, with Walker's alias method:
    cell i yields i below its threshold, and its alias above."""

    def __init__(self):
        text = (pathlib.Path(__file__).parent / "data" / "words.txt").read_text("utf-8")
        self.words = [line for line in text.splitlines() if not line.startswith("#")]
        count = len(self.words)
        weights = [1000000 // (rank + 2) for rank in range(count)]
        total, units = sum(weights), [weight * count for weight in weights]
        self.cells = [(MASK, i) for i in range(count)]
        poor = [i for i in range(count) if units[i] < total]
        rich = [i for i in range(count) if units[i] >= total]
        while poor and rich:
            small, large = poor.pop(), rich[-1]
            self.cells[small] = (units[small] << 32) // total, large
            units[large] -= total - units[small]
            if units[large] < total:
                poor.append(rich.pop())

    def at(self, bits):
        cell, part = divmod(bits * len(self.words), 1 << 32)
        threshold, other = self.cells[cell]
        return self.words[cell if part < threshold else other]


class Draw:
    """The random values of a record: xoshiro256++. `stream` separates several uses of one number."""

    def __init__(self, seed):
        self.seed, self.words = seed, Words()

    def start(self, number, stream=0):
        z, state = self.seed * 0xD1342543DE82EF95 + (number << 3) + stream, []
        for _ in range(4):  # splitmix64 spreads any seed over the state
            z = mixed = (z + 0x9E3779B97F4A7C15) & MASK
            mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
            mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
            state.append(mixed ^ mixed >> 31)
        self.state = state

    def bits(self):
        """32 random bits."""
        a, b, c, d = self.state
        total = (a + d) & MASK
        result = ((total << 23 | total >> 41) + a) & MASK
        c ^= a
        d ^= b
        self.state = a ^ d, b ^ c, c ^ (b << 17 & MASK), (d << 45 | d >> 19) & MASK
        return result >> 32

    def below(self, n):
        return self.bits() * n >> 32

    def skewed(self, n):
        """As below(), but prefers small values, as sizes and popularities do: half are in the first tenth."""
        return self.below(self.below(self.below(n) + 1) + 1)

    def chance(self, percent):
        return self.below(100) < percent

    def text(self, count):
        """`count` words with full stops between sentences."""
        words = [self.words.at(self.bits()) + ("." if i + 1 == count or self.chance(7) else "")
                 for i in range(count)]
        return " ".join(words)


def date(day):
    return (datetime.date(1970, 1, 1) + datetime.timedelta(day)).isoformat()


def hundredths(value):
    return f"{'-' if value < 0 else ''}{abs(value) // 100}.{abs(value) % 100:02}"


FIRST = ("Anna Ben Clara David Eva Frank Grace Hugo Irene James Karen Louis Mary Nina Oscar Paula Robert Susan "
         "Thomas Vera").split()
LAST = ("Adams Baker Carter Dixon Evans Foster Green Harris Irwin Jones King Lewis Martin Nelson Owens Parker "
        "Quinn Reed Smith Turner Underwood Vaughn Walker").split()


def person(number, between=" "):
    """The name of a person; a number follows if there are more people than names."""
    again, place = divmod(number, len(FIRST) * len(LAST))
    return f"{FIRST[place % len(FIRST)]}{between}{LAST[place // len(FIRST)]}{again or ''}"


# ---- e-mails: a BSON dump ----

PEOPLE, OUTSIDERS = 150, 4000
FOLDERS = ("inbox", "sent", "sent_items", "all_documents", "deleted_items", "notes", "discussion_threads",
           "projects")


def mailbox(number):
    return person(number, ".").lower()


def address(number):
    return mailbox(number) + ("@company.example" if number < PEOPLE else "@partner.example")


def mail(draw):
    """Sender, receiver, subject."""
    sender = draw.skewed(PEOPLE)
    receiver = draw.skewed(PEOPLE) if draw.chance(70) else PEOPLE + draw.skewed(OUTSIDERS)
    return sender, receiver, draw.text(2 + draw.below(5))[:-1]


def body(draw, sender, most):
    text = ""
    for _ in range(1 + draw.below(5)):
        if len(text) + 400 < most:
            text += draw.text(8 + draw.skewed(36)) + "\n\n"
    return f"{text}{person(sender)}\nCompany Trading\nPhone: +1 555 01{sender % 100:02}\n"


def email(draw, number):
    import bson
    sender, receiver, subject = mail(draw)
    sent = draw.chance(40)
    folder = FOLDERS[1] if sent else FOLDERS[draw.skewed(len(FOLDERS))]
    earlier = 1 + draw.below(min(number, 1000)) if number > 0 and draw.chance(40) else 0
    draw.start(number, 1)
    text = body(draw, sender, 1000)
    if earlier:             # the quoted text of the mail that is replied to
        draw.start(number - earlier)
        receiver, _, subject = mail(draw)
        draw.start(number - earlier, 1)
        quoted = body(draw, receiver, 700)[:-1].replace("\n", "\n> ")
        text += (f"\n-----Original Message-----\nFrom: {person(receiver)}\nSubject: {subject}\n\n"
                 f"> {quoted}\n")
    owner = sender if sent or receiver >= PEOPLE else receiver
    identity = (0x4F16FC97 + number // 1000 << 64) + (0xD1E2D32371 << 24) + number % (1 << 24)
    return bson.encode({
        "_id": bson.ObjectId(identity.to_bytes(12, "big")), "body": text, "mailbox": mailbox(owner),
        "subFolder": folder, "filename": f"{number % 2000}.",
        "headers": {
            "Mime-Version": "1.0", "Content-Type": "text/plain; charset=us-ascii",
            "Content-Transfer-Encoding": "7bit",
            "Message-ID": f"<{10000000 + number * 2654435761 % 90000000:08}.{1075840000000 + number * 977:013}"
                          ".JavaMail@server.company.example>",
            "Date": f"{date(10957 + number * 7919 % 730)} {6 + number * 31 % 14:02}:{number * 17 % 60:02}:00 "
                    "-0700 (PDT)",
            "From": address(sender), "To": address(receiver), "Subject": ("RE: " if earlier else "") + subject,
            "X-From": person(sender), "X-To": person(receiver), "X-cc": "", "X-bcc": "",
            "X-Folder": f"\\Archive_Dec2000\\Notes Folders\\{folder}"}})


# ---- flights: CSV with names such as origin.name, which a loader makes embedded documents ----

AIRPORTS = ("ATL,Hartsfield-Jackson International,Atlanta,GA", "LAX,Los Angeles International,Los Angeles,CA",
            "ORD,O'Hare International,Chicago,IL", "DFW,Dallas/Fort Worth International,Dallas,TX",
            "DEN,Denver International,Denver,CO", "JFK,John F. Kennedy International,New York,NY",
            "SFO,San Francisco International,San Francisco,CA", "LAS,Harry Reid International,Las Vegas,NV",
            "SEA,Seattle-Tacoma International,Seattle,WA", "CLT,Charlotte Douglas International,Charlotte,NC",
            "PHX,Phoenix Sky Harbor International,Phoenix,AZ", "MIA,Miami International,Miami,FL",
            "IAH,George Bush Intercontinental,Houston,TX", "BOS,Logan International,Boston,MA",
            "MSP,Minneapolis-St Paul International,Minneapolis,MN", "DTW,Detroit Metropolitan,Detroit,MI",
            "PHL,Philadelphia International,Philadelphia,PA",
            "SLC,Salt Lake City International,Salt Lake City,UT", "AUS,Austin-Bergstrom International,Austin,TX",
            "ANC,Ted Stevens International,Anchorage,AK")
CARRIERS = ("WN,Southwest Airlines", "DL,Delta Air Lines", "AA,American Airlines", "UA,United Air Lines",
            "OO,SkyWest Airlines", "B6,JetBlue Airways", "AS,Alaska Airlines", "NK,Spirit Air Lines")
FLIGHT_COLUMNS = ("flight.date,flight.number,carrier.code,carrier.name,tail,origin.code,origin.name,origin.city,"
                  "origin.state,destination.code,destination.name,destination.city,destination.state,"
                  "departure.scheduled,departure.actual,arrival.scheduled,delay.departure,delay.arrival,distance,"
                  "cancelled\n")


def flight(draw, number):
    """Flights of a day follow each other, and a route has a fixed distance, as in published files."""
    day = 16436 + number // 500 % 365       # of 2015
    origin = draw.skewed(len(AIRPORTS))
    target = (origin + 1 + draw.skewed(len(AIRPORTS) - 1)) % len(AIRPORTS)
    carrier = CARRIERS[draw.skewed(len(CARRIERS))]
    distance = 200 + (origin * 37 + target * 37 + origin * target * 11) % 2400
    departure = 300 + draw.below(1080)
    late = draw.skewed(180) - 8
    arrival = late + draw.below(25) - 15
    cancelled = draw.chance(2)
    code = 1 + draw.below(6999)
    tail = f"N{100 + draw.skewed(900):03}{carrier[:2]}"

    def time(minute):
        return f"{date(day + minute // 1440)}T{minute // 60 % 24:02}:{minute % 60:02}:00Z"
    return ",".join([
        date(day), str(code), carrier, tail, AIRPORTS[origin], AIRPORTS[target], time(departure),
        "" if cancelled else time(departure + late), time(departure + 35 + distance // 7),
        *(("", "") if cancelled else (str(late), str(arrival))), str(distance),
        str(cancelled).lower()]) + "\n"


# ---- orders and their line items, in the shape of TPC-H ----

ORDER_COLUMNS = ("o_orderkey|o_custkey|o_orderstatus|o_totalprice|o_orderdate|o_orderpriority|o_clerk|"
                 "o_shippriority|o_comment\n")
ITEM_COLUMNS = ("l_orderkey|l_partkey|l_suppkey|l_linenumber|l_quantity|l_extendedprice|l_discount|l_tax|"
                "l_returnflag|l_linestatus|l_shipdate|l_commitdate|l_receiptdate|l_shipinstruct|l_shipmode|"
                "l_comment\n")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")


def order_head(draw, number):
    """Key, customer, number of line items, day. As in TPC-H, 8 of each 32 keys are used."""
    return number // 8 * 32 + number % 8 + 1, 1 + draw.skewed(150000), 1 + draw.below(7), 8035 + draw.below(2406)


def order(draw, number):
    key, customer, items, day = order_head(draw, number)
    price = 100000 + items * draw.below(5000000)
    priority, clerk = PRIORITIES[draw.below(5)], 1 + draw.below(1000)
    status = "F" if day < 9298 else "O" if day > 9310 else "P"     # mid-1995
    return (f"{key}|{customer}|{status}|{hundredths(price)}|{date(day)}|{priority}|Clerk#{clerk:09}|0|"
            f"{draw.text(4 + draw.below(8))}\n")


def line_item(draw, key, day, line):
    part, quantity = 1 + draw.below(200000), 1 + draw.below(50)
    price = (90000 + part // 10 % 20001 + 100 * (part % 1000)) * quantity
    shipped = day + 1 + draw.below(121)
    discount, tax = draw.below(11), draw.below(9)
    status = "N|O" if shipped > 9298 else "R|F" if draw.chance(50) else "A|F"
    dates = [date(shipped), date(day + 30 + draw.below(61)), date(shipped + 1 + draw.below(30))]
    return (f"{key}|{part}|{1 + part % 10000}|{line}|{quantity}|{hundredths(price)}|0.{discount:02}|0.{tax:02}|"
            f"{status}|{'|'.join(dates)}|{INSTRUCTIONS[draw.below(4)]}|{SHIP_MODES[draw.below(7)]}|"
            f"{draw.text(2 + draw.below(6))}\n")


def line_items(draw, number):
    """All line items of an order."""
    key, _, items, day = order_head(draw, number)
    draw.start(number, 1)
    return "".join(line_item(draw, key, day, line) for line in range(1, items + 1))


# ---- tweets: JSON lines, with the user's full description in each tweet, as the publisher's files have it ----

PLACES = ("", "London", "Paris", "S\u00e3o Paulo", "\u6771\u4eac", "New York", "Berlin", "Lagos")
LANGUAGES = ("en", "es", "ja", "pt", "fr", "ar")
CLIENTS = ("phone", "web", "tablet", "deck")


def tweet_user(draw, user):
    draw.start(user, 2)     # a user's description is always the same
    text = draw.text(6 + user % 12)
    followers, friends = draw.skewed(90000), draw.skewed(5000)
    return (f'"user":{{"id":{1000003 + user * 7919},"name":"{person(user)}","screen_name":"user_{user}",'
            f'"location":"{PLACES[user % 8]}","description":"{text}","url":null,"followers_count":{followers},'
            f'"friends_count":{friends},"verified":false,"geo_enabled":{"false" if user % 5 else "true"},'
            '"profile_background_color":"C0DEED","default_profile":true,"profile_image_url":'
            f'"http://images.example/profile_images/{user}/normal.jpeg","following":null,"lang":"en"}},')


def tweet(draw, number):
    user, count, tag = draw.skewed(20000), 4 + draw.below(16), draw.skewed(400)
    tagged = draw.chance(30)
    second, identity = number // 20 % 86400, 505874924095815681 + number * 4194304
    text = draw.text(count) + (f" #tag{tag}" if tagged else "")
    client, retweets, favorites = CLIENTS[draw.skewed(4)], draw.skewed(300), draw.skewed(500)
    language = LANGUAGES[draw.skewed(6)]
    tags = f'{{"text":"tag{tag}","indices":[3,10]}}' if tagged else ""
    return (f'{{"created_at":{{"$date":"{date(16313 + number // 20 // 86400)}T{second // 3600:02}:'
            f'{second // 60 % 60:02}:{second % 60:02}Z"}},"id":{identity},"id_str":"{identity}","text":"{text}",'
            f'"source":"<a href=\\"http://client.example/{client}\\" rel=\\"nofollow\\">Client</a>",'
            '"truncated":false,"in_reply_to_status_id":null,"in_reply_to_user_id":null,'
            f'"retweet_count":{retweets},"favorite_count":{favorites},"lang":"{language}",'
            f'"entities":{{"hashtags":[{tags}],"urls":[],"user_mentions":[]}},{tweet_user(draw, user)}'
            '"geo":null,"coordinates":null,"place":null,"favorited":false,"retweeted":false}\n')


# ---- a car's sensor log: CSV of 40 columns, a row a second; "-" stands for a missing value ----

SENSORS = (     # a column's typical value and its range in hundredths; a range of 0: a column without values
    ("Device Time", 0, 0), ("GPS Time", 0, 0), ("Longitude", 0, 0), ("Latitude", 0, 0),
    ("GPS Speed (Meters/second)", 1400, 900), ("Horizontal Dilution of Precision", 800, 400),
    ("Altitude", 18000, 3000), ("Bearing", 18000, 17900), ("G(x)", 10, 300), ("G(y)", 480, 300),
    ("G(z)", 860, 200), ("G(calibrated)", 2, 10), ("Engine Load(%)", 3500, 3000),
    ("Engine Coolant Temperature(\u00b0C)", 8800, 400), ("Intake Manifold Pressure(kPa)", 5500, 3000),
    ("Engine RPM(rpm)", 180000, 100000), ("Mass Air Flow Rate(g/s)", 1200, 900),
    ("Timing Advance(\u00b0)", 1500, 1000), ("Intake Air Temperature(\u00b0C)", 3700, 500),
    ("Fuel trim bank 1 sensor 1(%)", -100, 300), ("Fuel trim bank 1 sensor 2(%)", 9900, 50),
    ("Fuel trim bank 1 sensor 3(%)", 0, 0), ("Fuel trim bank 1 sensor 4(%)", 0, 0),
    ("Speed (OBD)(km/h)", 6000, 5000), ("Throttle Position(Manifold)(%)", 2200, 1500),
    ("Accelerator PedalPosition D(%)", 1900, 1400), ("Ambient air temp(\u00b0C)", 2100, 200),
    ("Barometric pressure (from vehicle)(kPa)", 9900, 100), ("Commanded Equivalence Ratio(lambda)", 100, 5),
    ("Catalyst Temperature (Bank 1 Sensor 1)(\u00b0C)", 52000, 15000),
    ("Distance travelled since codes cleared(km)", 812300, 100), ("Fuel Level (From Engine ECU)(%)", 4600, 300),
    ("Fuel Rail Pressure(kPa)", 0, 0), ("Fuel used (trip)(l)", 320, 300),
    ("Horsepower (At the wheels)(hp)", 3100, 3000), ("Kilometers Per Litre(Instant)(kpl)", 1300, 1100),
    ("O2 Volts Bank 1 sensor 1(V)", 45, 40), ("Torque(Nm)", 8900, 7000),
    ("Turbo Boost & Vacuum Gauge(psi)", -500, 500), ("Voltage (Control Module)(V)", 1390, 40))


def reading(draw, number):
    second = number % 86400
    cells = [f"{date(16340 + number // 86400)} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}."
             f"{470 + number % 11:03}"]
    for index, (_, middle, span) in enumerate(SENSORS[1:], 1):
        if span:    # the values change every few seconds, as those of sensors that are read in turn
            draw.start(number // (1 + index % 4) * len(SENSORS) + index, 3)
        cells.append(hundredths(middle + draw.below(2 * span) - span) if span else "-")
    return ",".join(cells) + "\n"


FORMATS = {     # name: first line, record
    "emails": ("", email), "flights": (FLIGHT_COLUMNS, flight), "orders": (ORDER_COLUMNS, order),
    "lineitems": (ITEM_COLUMNS, line_items), "tweets": ("", tweet),
    "sensors": (",".join(name for name, _, _ in SENSORS) + "\n", reading)}


def records(name, seed):
    """The first line of a format, and its records in order, as bytes."""
    head, make = FORMATS[name]
    draw = Draw(seed)
    yield head.encode("utf-8")
    for number in itertools.count():
        draw.start(number)
        record = make(draw, number)
        yield record if isinstance(record, bytes) else record.encode("utf-8")


def main():
    parser = argparse.ArgumentParser(description="Generates records that repeat themselves as real data does.")
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("--rows", type=int, required=True, help="of lineitems: the number of orders")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    with options.output.open("wb") as output:
        output.writelines(itertools.islice(records(options.format, options.seed), options.rows + 1))


if __name__ == "__main__":
    sys.exit(main())
