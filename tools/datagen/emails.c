// SPDX-License-Identifier: Apache-2.0
//
// E-mails of a company as a BSON dump: mailboxes, folders, headers as an embedded document, bodies with
// signatures and quoted replies.
#include <string.h>

#include "rows.h"

enum { PEOPLE = 150, OUTSIDERS = 4000, BODY_MOST = 1000, QUOTED_MOST = 700 };

static const char *const folders[] = {
    "inbox",         "sent",  "sent_items",         "all_documents",
    "deleted_items", "notes", "discussion_threads", "projects"};

// ---- BSON ----

static char *put_int32(char *p, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        *p++ = (char)(value >> (8 * i));
    }
    return p;
}

static char *put_key(char *p, char type, const char *key) {
    *p++ = type;
    p = put_text(p, key);
    *p++ = '\0';
    return p;
}

// The start of a document or string: its length is written at its end.
static char *end_document(char *begin, char *p) {
    *p++ = '\0';
    put_int32(begin, (uint32_t)(p - begin));
    return p;
}

static char *begin_string(char *p, const char *key) {
    return put_key(p, 2, key) + 4;
}

static char *end_string(char *begin, char *p) {
    *p++ = '\0';
    put_int32(begin - 4, (uint32_t)(p - begin));
    return p;
}

static char *put_string(char *p, const char *key, const char *text) {
    char *begin = begin_string(p, key);
    return end_string(begin, put_text(begin, text));
}

// ---- an e-mail ----

struct mail {
    uint32_t sender, receiver;
    char subject[160];
};

static char *put_address(char *p, uint32_t person) {
    p = put_person(p, person, true);
    return put_text(p, person < PEOPLE ? "@company.example" : "@partner.example");
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
        p = put_text(p, "\n\n");
    }
    p = put_person(p, sender, false);
    p = put_text(p, "\nCompany Trading\nPhone: +1 555 01");
    p = put_digits(p, sender % 100, 2);
    return put_text(p, "\n");
}

// The quoted text of the mail that is replied to, with "> " before each line.
static char *put_quoted(struct drawer *drawer, uint64_t number, char *p, struct mail *replied) {
    char text[QUOTED_MOST + 400];
    drawer_start(drawer, number, 0);
    draw_mail(drawer, replied);
    drawer_start(drawer, number, 1);
    char *end = put_body(drawer, text, replied->sender, QUOTED_MOST);
    p = put_text(p, "\n-----Original Message-----\nFrom: ");
    p = put_person(p, replied->sender, false);
    p = put_text(p, "\nSubject: ");
    p = put_text(p, replied->subject);
    p = put_text(p, "\n\n> ");
    for (const char *c = text; c < end; c++) {
        *p++ = *c;
        if (*c == '\n' && c + 1 < end) {
            p = put_text(p, "> ");
        }
    }
    return p;
}

static char *put_headers(char *p, uint64_t number, const struct mail *mail, const char *prefix,
                         const char *folder) {
    char *headers = put_key(p, 3, "headers");
    p = put_string(headers + 4, "Mime-Version", "1.0");
    p = put_string(p, "Content-Type", "text/plain; charset=us-ascii");
    p = put_string(p, "Content-Transfer-Encoding", "7bit");
    char *text = begin_string(p, "Message-ID");
    p = put_text(text, "<");
    p = put_digits(p, 10000000 + number * 2654435761u % 90000000, 8);
    p = put_text(p, ".");
    p = put_digits(p, 1075840000000 + number * 977, 13);
    p = end_string(text, put_text(p, ".JavaMail@server.company.example>"));
    text = begin_string(p, "Date");
    p = put_date(text, 10957 + (int64_t)(number * 7919 % 730));
    p = put_text(p, " ");
    p = put_digits(p, 6 + number * 31 % 14, 2);
    p = put_text(p, ":");
    p = put_digits(p, number * 17 % 60, 2);
    p = end_string(text, put_text(p, ":00 -0700 (PDT)"));
    text = begin_string(p, "From");
    p = end_string(text, put_address(text, mail->sender));
    text = begin_string(p, "To");
    p = end_string(text, put_address(text, mail->receiver));
    text = begin_string(p, "Subject");
    p = end_string(text, put_text(put_text(text, prefix), mail->subject));
    text = begin_string(p, "X-From");
    p = end_string(text, put_person(text, mail->sender, false));
    text = begin_string(p, "X-To");
    p = end_string(text, put_person(text, mail->receiver, false));
    p = put_string(p, "X-cc", "");
    p = put_string(p, "X-bcc", "");
    text = begin_string(p, "X-Folder");
    p = put_text(put_text(text, "\\Archive_Dec2000\\Notes Folders\\"), folder);
    p = end_string(text, p);
    return end_document(headers, p);
}

static char *put_email(struct drawer *drawer, uint64_t number, char *p) {
    struct mail mail, replied = {0};
    char *document = p;
    draw_mail(drawer, &mail);
    bool sent = drawer_chance(drawer, 40);
    const char *folder = sent ? folders[1] : folders[drawer_skewed(drawer, 8)];
    uint64_t earlier = number > 0 && drawer_chance(drawer, 40)
                           ? 1 + drawer_below(drawer, number < 1000 ? (uint32_t)number : 1000)
                           : 0;
    p = put_key(p + 4, 7, "_id");
    for (int i = 0; i < 12; i++) { // seconds, a fixed machine and process, the number
        uint64_t value = i < 4   ? (0x4f16fc97u + number / 1000) >> (8 * (3 - i))
                         : i < 9 ? 0xd1e2d32371u >> (8 * (8 - i))
                                 : number >> (8 * (11 - i));
        *p++ = (char)value;
    }
    char *body = begin_string(p, "body");
    drawer_start(drawer, number, 1);
    p = put_body(drawer, body, mail.sender, BODY_MOST);
    if (earlier > 0) {
        p = put_quoted(drawer, number - earlier, p, &replied);
        memcpy(mail.subject, replied.subject, sizeof mail.subject);
        mail.receiver = replied.sender;
    }
    p = end_string(body, p);
    uint32_t owner = sent || mail.receiver >= PEOPLE ? mail.sender : mail.receiver;
    char *text = begin_string(p, "mailbox");
    p = end_string(text, put_person(text, owner, true));
    p = put_string(p, "subFolder", folder);
    text = begin_string(p, "filename");
    p = end_string(text, put_text(put_count(text, number % 2000), "."));
    p = put_headers(p, number, &mail, earlier > 0 ? "RE: " : "", folder);
    return end_document(document, p);
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
