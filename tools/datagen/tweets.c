// SPDX-License-Identifier: Apache-2.0
//
// Tweets as JSON lines, with the user's full description in each tweet, as the publisher's files have it.
#include "rows.h"

enum { USERS = 20000, TAGS = 400 };

static char *put_user(struct drawer *drawer, uint32_t user, char *p) {
    static const char *const places[] = {
        "",         "London", "Paris", "S\303\243o Paulo", "\346\235\261\344\272\254",
        "New York", "Berlin", "Lagos"};
    p = put_text(put_count(put_text(p, "\"user\":{\"id\":"), 1000003 + user * 7919ull), ",");
    p = put_person(put_text(p, "\"name\":\""), user, false);
    p = put_count(put_text(p, "\",\"screen_name\":\"user_"), user);
    p = put_text(put_text(p, "\",\"location\":\""), places[user % 8]);
    drawer_start(drawer, user, 2); // a user's description is always the same
    p = put_words(drawer, put_text(p, "\",\"description\":\""), 6 + user % 12);
    p = put_count(put_text(p, "\",\"url\":null,\"followers_count\":"),
                  drawer_skewed(drawer, 90000));
    p = put_count(put_text(p, ",\"friends_count\":"), drawer_skewed(drawer, 5000));
    p = put_text(p, ",\"verified\":false,\"geo_enabled\":");
    p = put_text(p, user % 5 == 0 ? "true" : "false");
    p = put_text(p, ",\"profile_background_color\":\"C0DEED\",\"default_profile\":true,"
                    "\"profile_image_url\":\"http://images.example/profile_images/");
    return put_text(put_count(p, user), "/normal.jpeg\",\"following\":null,\"lang\":\"en\"},");
}

static char *put_tweet(struct drawer *drawer, uint64_t number, char *p) {
    static const char *const languages[] = {"en", "es", "ja", "pt", "fr", "ar"};
    static const char *const clients[] = {"phone", "web", "tablet", "deck"};
    uint32_t user = drawer_skewed(drawer, USERS);
    uint32_t words = 4 + drawer_below(drawer, 16);
    uint32_t tag = drawer_skewed(drawer, TAGS);
    bool tagged = drawer_chance(drawer, 30);
    uint64_t second = number / 20;
    p = put_date(put_text(p, "{\"created_at\":{\"$date\":\""), 16313 + (int64_t)(second / 86400));
    p = put_digits(put_text(p, "T"), second / 3600 % 24, 2);
    p = put_digits(put_text(p, ":"), second / 60 % 60, 2);
    p = put_digits(put_text(p, ":"), second % 60, 2);
    p = put_count(put_text(p, "Z\"},\"id\":"), 505874924095815681 + number * 4194304);
    p = put_count(put_text(p, ",\"id_str\":\""), 505874924095815681 + number * 4194304);
    p = put_words(drawer, put_text(p, "\",\"text\":\""), words);
    p = tagged ? put_count(put_text(p, " #tag"), tag) : p;
    p = put_text(put_text(p, "\",\"source\":\"<a href=\\\"http://client.example/"),
                 clients[drawer_skewed(drawer, 4)]);
    p = put_text(p,
                 "\\\" rel=\\\"nofollow\\\">Client</a>\",\"truncated\":false,"
                 "\"in_reply_to_status_id\":null,\"in_reply_to_user_id\":null,\"retweet_count\":");
    p = put_count(p, drawer_skewed(drawer, 300));
    p = put_count(put_text(p, ",\"favorite_count\":"), drawer_skewed(drawer, 500));
    p = put_text(put_text(p, ",\"lang\":\""), languages[drawer_skewed(drawer, 6)]);
    p = put_text(p, "\",\"entities\":{\"hashtags\":[");
    if (tagged) {
        p = put_text(put_count(put_text(p, "{\"text\":\"tag"), tag), "\",\"indices\":[3,10]}");
    }
    p = put_text(p, "],\"urls\":[],\"user_mentions\":[]},");
    p = put_user(drawer, user, p);
    return put_text(p, "\"geo\":null,\"coordinates\":null,\"place\":null,\"favorited\":false,"
                       "\"retweeted\":false}\n");
}

const struct format tweets_format = {
    .name = "tweets",
    .summary = "tweets as JSON lines",
    .help = "  About a kilobyte each; 20,000 users, some of whom tweet much more often than "
            "others.\n",
    .check = rows_check,
    .write = rows_write,
    .put = put_tweet,
};
