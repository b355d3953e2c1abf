// SPDX-License-Identifier: Apache-2.0
//
// E-mails of a company as a BSON dump: mailboxes, folders, headers as an embedded document, bodies with
// signatures and quoted replies.
#include <bson/bson.h>
#include <inttypes.h>
#include <string.h>

#include "output.h"
#include "rows.h"

enum { PEOPLE = 150, OUTSIDERS = 4000, BODY_MOST = 1000, QUOTED_MOST = 700 };

static const char *const folders[] = {
    "inbox",         "sent",  "sent_items",         "all_documents",
    "deleted_items", "notes", "discussion_threads", "projects"};

static void append(bson_t *document, const char *key, const char *text, const char *end) {
    bson_append_utf8(document, key, -1, text, (int)(end - text));
}

struct mail {
    uint32_t sender, receiver;
    char subject[160];
};

static char *put_address(char *p, uint32_t person) {
    p = put_person(p, person, true);
    return stpcpy(p, person < PEOPLE ? "@company.example" : "@partner.example");
}

static void draw_mail(struct drawer *drawer, struct mail *mail) {
    mail->sender = drawer_skewed(drawer, PEOPLE);
    mail->receiver = drawer_chance(drawer, 70) ? drawer_skewed(drawer, PEOPLE)
                                               : PEOPLE + drawer_skewed(drawer, OUTSIDERS);
    char *p = put_words(drawer, mail->subject, 2 + drawer_below(drawer, 5));
    p[-1] = '\0'; // the full stop
}

static char *put_body(struct drawer *drawer, char *p, uint32_t sender, size_t most) {
    char *begin = p;
    unsigned paragraphs = 1 + drawer_below(drawer, 5);
    for (unsigned i = 0; i < paragraphs && (size_t)(p - begin) + 400 < most; i++) {
        p = put_words(drawer, p, 8 + drawer_skewed(drawer, 36));
        p = put(p, "\n\n");
    }
    p = put_person(p, sender, false);
    return put(p, "\nCompany Trading\nPhone: +1 555 01%02u\n", sender % 100);
}

// The quoted text of the mail that is replied to, with "> " before each line.
static char *put_quoted(struct drawer *drawer, uint64_t number, char *p, struct mail *replied) {
    char text[QUOTED_MOST + 400];
    drawer_start(drawer, number, 0);
    draw_mail(drawer, replied);
    drawer_start(drawer, number, 1);
    char *end = put_body(drawer, text, replied->sender, QUOTED_MOST);
    p = put(p, "\n-----Original Message-----\nFrom: ");
    p = put_person(p, replied->sender, false);
    p = put(p, "\nSubject: %s\n\n> ", replied->subject);
    for (const char *c = text; c < end; c++) {
        *p++ = *c;
        if (*c == '\n' && c + 1 < end) {
            p = put(p, "> ");
        }
    }
    return p;
}

static void append_headers(bson_t *document, uint64_t number, const struct mail *mail,
                           const char *prefix, const char *folder) {
    char text[256];
    bson_t headers;
    BSON_APPEND_DOCUMENT_BEGIN(document, "headers", &headers);
    BSON_APPEND_UTF8(&headers, "Mime-Version", "1.0");
    BSON_APPEND_UTF8(&headers, "Content-Type", "text/plain; charset=us-ascii");
    BSON_APPEND_UTF8(&headers, "Content-Transfer-Encoding", "7bit");
    put(text, "<%08" PRIu64 ".%013" PRIu64 ".JavaMail@server.company.example>",
        10000000 + number * 2654435761u % 90000000, 1075840000000 + number * 977);
    BSON_APPEND_UTF8(&headers, "Message-ID", text);
    put(put_date(text, 10957 + (int64_t)(number * 7919 % 730)), " %02u:%02u:00 -0700 (PDT)",
        6 + (uint32_t)(number * 31 % 14), (uint32_t)(number * 17 % 60));
    BSON_APPEND_UTF8(&headers, "Date", text);
    append(&headers, "From", text, put_address(text, mail->sender));
    append(&headers, "To", text, put_address(text, mail->receiver));
    append(&headers, "Subject", text, put(text, "%s%s", prefix, mail->subject));
    append(&headers, "X-From", text, put_person(text, mail->sender, false));
    append(&headers, "X-To", text, put_person(text, mail->receiver, false));
    BSON_APPEND_UTF8(&headers, "X-cc", "");
    BSON_APPEND_UTF8(&headers, "X-bcc", "");
    append(&headers, "X-Folder", text, put(text, "\\Archive_Dec2000\\Notes Folders\\%s", folder));
    bson_append_document_end(document, &headers);
}

static char *put_email(struct drawer *drawer, uint64_t number, char *p) {
    struct mail mail, replied = {0};
    bson_t document = BSON_INITIALIZER;
    bson_oid_t id;
    char text[OUTPUT_ROOM];
    draw_mail(drawer, &mail);
    bool sent = drawer_chance(drawer, 40);
    const char *folder = sent ? folders[1] : folders[drawer_skewed(drawer, 8)];
    uint64_t earlier = number > 0 && drawer_chance(drawer, 40)
                           ? 1 + drawer_below(drawer, number < 1000 ? (uint32_t)number : 1000)
                           : 0;
    for (int i = 0; i < 12; i++) { // seconds, a fixed machine and process, the number
        uint64_t value = i < 4   ? (0x4f16fc97u + number / 1000) >> (8 * (3 - i))
                         : i < 9 ? 0xd1e2d32371u >> (8 * (8 - i))
                                 : number >> (8 * (11 - i));
        id.bytes[i] = (uint8_t)value;
    }
    BSON_APPEND_OID(&document, "_id", &id);
    drawer_start(drawer, number, 1);
    char *end = put_body(drawer, text, mail.sender, BODY_MOST);
    if (earlier > 0) {
        end = put_quoted(drawer, number - earlier, end, &replied);
        memcpy(mail.subject, replied.subject, sizeof mail.subject);
        mail.receiver = replied.sender;
    }
    append(&document, "body", text, end);
    uint32_t owner = sent || mail.receiver >= PEOPLE ? mail.sender : mail.receiver;
    append(&document, "mailbox", text, put_person(text, owner, true));
    BSON_APPEND_UTF8(&document, "subFolder", folder);
    append(&document, "filename", text, put(text, "%" PRIu64 ".", number % 2000));
    append_headers(&document, number, &mail, earlier > 0 ? "RE: " : "", folder);
    memcpy(p, bson_get_data(&document), document.len);
    p += document.len;
    bson_destroy(&document);
    return p;
}

const struct format emails_format = {
    .name = "emails",
    .summary = "e-mails of a company, as a BSON dump",
    .help = "  BSON documents as mongodump writes them: 150 mailboxes, headers as an embedded\n"
            "  document, bodies of words by Zipf's law with signatures; 40 % quote an earlier "
            "e-mail.\n",
    .check = rows_check,
    .write = rows_write,
    .put = put_email,
};
