// SPDX-License-Identifier: Apache-2.0
//
// Reads the groups (schemas/isd-groups.tsv, the loader's table), how often each occurs in records
// of each type (isd-shares.txt), and the properties of each type (isd-types.txt).
#include <string.h>

#include "isd.h"
#include "tables.h"

enum { RARE = 7, WHOLE = 10000 }; // the share of groups without a count; all records

static uint32_t share_of(uint32_t in_whole) {
    return (uint32_t)((uint64_t)in_whole * 65536 / WHOLE);
}

// A line of the table of groups: first id, last id, key, "path n2/10 unit, path q1, ...".
static void read_family(struct isd_family *family, const char *line) {
    memcpy(family->letters, line, 2);
    family->first = line[2];
    family->instances = (uint8_t)(line[6] - line[2] + 1);
    const char *p = line + 8;
    p += strcspn(p, "\t\n");
    while (*p != '\n' && *p != '\0' && family->field_count < FIELDS_MAX) {
        p += strspn(p, "\t, ");
        p += strcspn(p, " \n"); // the path
        p += *p == ' ';
        family->fields[family->field_count].type = *p;
        family->fields[family->field_count].width = (uint8_t)(p[1] - '0');
        family->field_count++;
        p += strcspn(p, ",\n");
    }
}

static int find_family(const struct isd_groups *groups, const char *id) {
    for (int i = 0; i < groups->count; i++) {
        const struct isd_family *family = &groups->families[i];
        if (memcmp(family->letters, id, 2) == 0 && id[2] >= family->first &&
            id[2] < family->first + family->instances) {
            return i;
        }
    }
    return 0; // cannot happen with the built-in tables
}

static void read_families(struct isd_groups *groups) {
    const char *line = table_find("isd-groups.tsv");
    while (*line != '\0' && groups->count < FAMILIES_MAX) {
        if (*line != '#') {
            struct isd_family *family = &groups->families[groups->count];
            read_family(family, line);
            // IA2 has other fields than IA1, but occurs only together with it.
            bool goes_on = family->first > '1';
            family->drawn_with = (uint8_t)(groups->count - goes_on);
            groups->count++;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
}

static void read_shares(struct isd_groups *groups, const uint32_t *bare) {
    uint8_t named[FAMILIES_MAX] = {0}; // instances
    const char *cursor = table_find("isd-shares.txt");
    struct table_row row;
    while (table_next(&cursor, &row)) {
        int number = find_family(groups, row.cells[0]);
        struct isd_family *family = &groups->families[number];
        named[number]++;
        for (size_t type = 0; type < ISD_TYPES; type++) {
            // The counts are over all records, but groups are drawn only for records with
            // additional data.
            uint32_t share = table_number(&row, type + 1) * WHOLE / (WHOLE - bare[type]);
            family->shares[type][row.cells[0][2] - family->first] = share_of(share);
        }
    }
    for (int i = 0; i < groups->count; i++) {
        for (int type = 0; type < ISD_TYPES; type++) {
            // Groups without a count: the first instance is rare, further instances are rarer.
            uint32_t *shares = groups->families[i].shares[type];
            const uint32_t *shares_before = groups->families[i > 0 ? i - 1 : 0].shares[type];
            for (unsigned k = named[i]; k < groups->families[i].instances; k++) {
                uint32_t before = k > 0                             ? shares[k - 1]
                                  : groups->families[i].first > '1' ? shares_before[0]
                                                                    : UINT32_MAX;
                shares[k] = (before < share_of(RARE) ? before : share_of(RARE)) * 3 / 4;
            }
        }
    }
}

void isd_groups_init(struct isd_groups *groups) {
    *groups = (struct isd_groups){0};
    read_families(groups);
    uint32_t bare[ISD_TYPES] = {0};
    const char *cursor = table_find("isd-types.txt");
    struct table_row row;
    for (int type = 0; type < ISD_TYPES && table_next(&cursor, &row); type++) {
        bare[type] = table_number(&row, 1);
        for (size_t i = 0; i < SHARE_COUNT; i++) {
            groups->types[type][i] = share_of(table_number(&row, i + 1));
        }
    }
    read_shares(groups, bare);
    static const char specials[SPECIAL_COUNT][4] = {"AJ1", "AU1", "AW1", "GF1", "MW1"};
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        groups->special[i] = (uint8_t)find_family(groups, specials[i]);
    }
    // Layers of clouds come as GA and GD, weather as AU and AW.
    groups->families[find_family(groups, "GD1")].drawn_with = (uint8_t)find_family(groups, "GA1");
    groups->families[groups->special[SPECIAL_AW]].drawn_with = groups->special[SPECIAL_AU];
}
