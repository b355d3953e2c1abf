// SPDX-License-Identifier: Apache-2.0
//
// Orders and their line items in the shape of TPC-H: two tables, delimited by pipes, with a header. Both
// formats draw the same orders, so that --rows N of both belong together.
#include <inttypes.h>

#include "rows.h"

enum { ITEMS_MOST = 7, FIRST_DAY = 8035, DAYS = 2406 }; // 1992-01-01 to 1998-08-02

struct order {
    uint64_t key;
    uint32_t customer, items;
    int64_t day;
};

// As in TPC-H, 8 of each 32 keys are used.
static struct order draw_order(struct drawer *drawer, uint64_t number) {
    drawer_start(drawer, number, 0);
    struct order order = {.key = number / 8 * 32 + number % 8 + 1};
    order.customer = 1 + drawer_skewed(drawer, 150000);
    order.items = 1 + drawer_below(drawer, ITEMS_MOST);
    order.day = FIRST_DAY + drawer_below(drawer, DAYS);
    return order;
}

static char *put_order(struct drawer *drawer, uint64_t number, char *p) {
    static const char *const priorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
                                             "5-LOW"};
    struct order order = draw_order(drawer, number);
    int64_t price = 100000 + (int64_t)order.items * drawer_below(drawer, 5000000);
    const char *priority = priorities[drawer_below(drawer, 5)];
    uint32_t clerk = 1 + drawer_below(drawer, 1000);
    char status = order.day < 9298 ? 'F' : order.day > 9310 ? 'O' : 'P'; // mid-1995
    p = put(p, "%" PRIu64 "|%u|%c|", order.key, order.customer, status);
    p = put(put_hundredths(p, price), "|");
    p = put(put_date(p, order.day), "|%s|Clerk#%09u|0|", priority, clerk);
    return put(put_words(drawer, p, 4 + drawer_below(drawer, 8)), "\n");
}

static char *put_item(struct drawer *drawer, const struct order *order, uint32_t line, char *p) {
    static const char *const instructions[] = {"DELIVER IN PERSON", "COLLECT COD", "NONE",
                                               "TAKE BACK RETURN"};
    static const char *const modes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
    uint32_t part = 1 + drawer_below(drawer, 200000);
    uint32_t quantity = 1 + drawer_below(drawer, 50);
    int64_t price = 90000 + part / 10 % 20001 + 100 * (part % 1000);
    int64_t shipped = order->day + 1 + drawer_below(drawer, 121);
    p = put(p, "%" PRIu64 "|%u|%u|%u|%u|", order->key, part, 1 + part % 10000, line + 1, quantity);
    p = put(put_hundredths(p, price * quantity), "|0.%02u|", drawer_below(drawer, 11));
    p = put(p, "0.%02u|", drawer_below(drawer, 9));
    p = put(p, "%s", shipped > 9298 ? "N|O|" : drawer_chance(drawer, 50) ? "R|F|" : "A|F|");
    p = put(put_date(p, shipped), "|");
    p = put(put_date(p, order->day + 30 + drawer_below(drawer, 61)), "|");
    p = put(put_date(p, shipped + 1 + drawer_below(drawer, 30)), "|");
    p = put(p, "%s|", instructions[drawer_below(drawer, 4)]);
    p = put(p, "%s|", modes[drawer_below(drawer, 7)]);
    return put(put_words(drawer, p, 2 + drawer_below(drawer, 6)), "\n");
}

// All line items of an order: 7 of at most 300 bytes.
static char *put_items(struct drawer *drawer, uint64_t number, char *p) {
    struct order order = draw_order(drawer, number);
    drawer_start(drawer, number, 1);
    for (uint32_t line = 0; line < order.items; line++) {
        p = put_item(drawer, &order, line, p);
    }
    return p;
}

const struct format orders_format = {
    .name = "orders",
    .summary = "orders with the columns of TPC-H",
    .help = "  Text delimited by pipes, with a header. The columns are those of TPC-H.\n",
    .check = rows_check,
    .write = rows_write,
    .header = "o_orderkey|o_custkey|o_orderstatus|o_totalprice|o_orderdate|o_orderpriority|o_clerk|"
              "o_shippriority|o_comment\n",
    .put = put_order,
};

const struct format lineitems_format = {
    .name = "lineitems",
    .summary = "the line items of the orders",
    .help =
        "  1 to 7 for each order of format orders with the same --seed; --rows counts orders.\n",
    .check = rows_check,
    .write = rows_write,
    .header = "l_orderkey|l_partkey|l_suppkey|l_linenumber|l_quantity|l_extendedprice|l_discount|"
              "l_tax|l_returnflag|l_linestatus|l_shipdate|l_commitdate|l_receiptdate|"
              "l_shipinstruct|l_shipmode|l_comment\n",
    .put = put_items,
};
