/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects summed up: reasons that differ only in their values are one kind, with the first example;
 * the sum is that of all rejects, however many kinds there are. */
#include "ledger/rejects.h"
#include "unit.h"

static sl_reject_kinds kinds;

static void place(const void *context, char *out, size_t room) {
    snprintf(out, room, "%s", (const char *)context);
}

static void add(const char *reason, const char *column, const char *where) {
    sl_reject_kinds_add(&kinds, sl_text_of(reason), sl_text_of(column), place, where);
}

static void assert_kind(size_t index, uint64_t count, const char *reason, const char *column,
                        const char *where, const char *first) {
    const sl_reject_kind *kind = &kinds.items[index];
    assert_int_equal(kind->count, count);
    assert_string_equal(kind->reason, reason);
    assert_string_equal(kind->column, column);
    assert_string_equal(kind->first_place, where);
    assert_string_equal(kind->first_reason, first);
}

TEST(values_make_no_kinds) {
    add("\"abc\" is not an integer", "n", "a, line 1");
    add("\"say \\\"x\\\"\" is not an integer", "n", "a, line 2");
    add("\"abc\" is not an integer", "m", "a, line 3");
    add("too few fields: 3 of 14", "", "a, line 4");
    add("too few fields: -12.5 of 14", "", "a, line 5");
    add("the field is empty, but must have a value", "n", "a, line 6");
    assert_int_equal(kinds.count, 4);
    assert_kind(0, 2, "\"...\" is not an integer", "n", "a, line 1", "\"abc\" is not an integer");
    assert_kind(1, 1, "\"abc\" is not an integer", "m", "a, line 3", "\"abc\" is not an integer");
    assert_kind(2, 2, "too few fields: N of N", "", "a, line 4", "too few fields: 3 of 14");
    assert_kind(3, 1, "the field is empty, but must have a value", "n", "a, line 6",
                "the field is empty, but must have a value");
    sl_reject_kinds_clear(&kinds);
}

TEST(equal_reasons_keep_their_values) {
    for (int i = 0; i < 5; i++)
        add("too few fields: 3 of 14", "", "a");
    assert_kind(0, 5, "too few fields: 3 of 14", "", "a", "too few fields: 3 of 14");
    add("too few fields: 2 of 14", "", "b");
    add("too few fields: 3 of 14", "", "c");
    assert_int_equal(kinds.count, 1);
    assert_kind(0, 7, "too few fields: N of N", "", "a", "too few fields: 3 of 14");
    sl_reject_kinds_clear(&kinds);
}

TEST(words_with_digits_and_apostrophes_are_kept) {
    add("E11000 isn't the server's code for field x1_2 'v'", "", "a");
    add("E11000 isn't the server's code for field x1_2 'w'", "", "b");
    assert_string_equal(kinds.items[0].reason,
                        "E11000 isn't the server's code for field x1_2 '...'");
    sl_reject_kinds_clear(&kinds);
}

TEST(the_memory_is_bounded_and_the_sum_exact) {
    char column[20];
    for (int i = 0; i < 1000; i++) {
        snprintf(column, sizeof column, "c%d", i % 100);
        add("wrong", column, "a");
    }
    assert_int_equal(kinds.count, SL_REJECT_KINDS_MAX);
    assert_int_equal(kinds.others, 1000 - 10 * SL_REJECT_KINDS_MAX);
    assert_int_equal(sl_reject_kinds_sum(&kinds), 1000);
    sl_reject_kinds_clear(&kinds);
    assert_int_equal(sl_reject_kinds_sum(&kinds), 0);
}

TEST(long_and_hostile_texts) {
    char text[2000];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    add(text, text, "a");
    memset(text, '7', sizeof text - 1);
    add(text, "", "a");
    add("\x1b[31m \xff \"unclosed", "", "a");
    assert_string_equal(kinds.items[2].reason, "\\x1b[31m \\xff \"unclosed");
    assert_int_equal(sl_reject_kinds_sum(&kinds), 3);
    sl_reject_kinds_clear(&kinds);
}

TEST(the_most_frequent_come_first) {
    size_t order[SL_REJECT_KINDS_MAX];
    static const int counts[] = {2, 5, 2, 9};
    static const char *const columns[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < counts[i]; k++)
            add("wrong", columns[i], "a");
    }
    sl_reject_kinds_order(&kinds, order);
    static const size_t expected[] = {3, 1, 0, 2};
    assert_memory_equal(order, expected, sizeof expected);
    sl_reject_kinds_clear(&kinds);
}

TEST(rejects_of_an_earlier_run) {
    static const char rows[] = "source\tline\toffset\tcolumn\treason\trecord\n"
                               "d/a.txt\t2\t77\tn\t\"x\" is bad\tx|y\n"
                               "d/a.txt\t\t99\tn\t\"y\" is bad\tx|y\n"
                               "b.txt\t\t5\t\tdamaged\t\n"
                               "b.txt\t\t9\t\tlater\t\n";
    const char *path = unit_path("rejects.tsv");
    unit_write(path, rows, sizeof rows - 1);
    sl_reject_kinds_read(&kinds, path, sizeof rows - 1 - strlen("b.txt\t\t9\t\tlater\t\n"));
    assert_int_equal(kinds.count, 2);
    assert_kind(0, 2, "\"...\" is bad", "n", "a.txt, line 2", "\"x\" is bad");
    assert_kind(1, 1, "damaged", "", "b.txt, byte 5", "damaged");
    sl_reject_kinds_clear(&kinds);
    char *long_row = unit_keep(calloc(1, 1 << 20));
    memset(long_row, 'x', (1 << 20) - 1); /* no program of ours writes such a row */
    unit_write(path, long_row, 1 << 20);
    sl_reject_kinds_read(&kinds, path, 1 << 20);
    sl_reject_kinds_read(&kinds, "/nonexistent", 100);
    assert_int_equal(sl_reject_kinds_sum(&kinds), 0);
}
