// SPDX-License-Identifier: Apache-2.0
//
// Tweets as JSON lines, with the user's full description in each tweet, as the publisher's files have it.
#include <inttypes.h>

#include "rows.h"

enum { USERS = 20000, TAGS = 400 };

static char *put_user(struct drawer *drawer, uint32_t user, char *p) {
    static const char *const places[] = {
        "",         "London", "Paris", "S\303\243o Paulo", "\346\235\261\344\272\254",
        "New York", "Berlin", "Lagos"};
    p = put(p, "\"user\":{\"id\":%llu,\"name\":\"", 1000003 + user * 7919ull);
    p = put_person(p, user, false);
    p = put(p, "\",\"screen_name\":\"user_%u\",\"location\":\"%s\",\"description\":\"", user,
            places[user % 8]);
    drawer_start(drawer, user, 2); // a user's description is always the same
    p = put_words(drawer, p, 6 + user % 12);
    uint32_t followers = drawer_skewed(drawer, 90000);
    uint32_t friends = drawer_skewed(drawer, 5000);
    return put(p,
               "\",\"url\":null,\"followers_count\":%u,\"friends_count\":%u,\"verified\":false,"
               "\"geo_enabled\":%s,\"profile_background_color\":\"C0DEED\","
               "\"default_profile\":true,\"profile_image_url\":"
               "\"http://images.example/profile_images/%u/normal.jpeg\",\"following\":null,"
               "\"lang\":\"en\"},",
               followers, friends, user % 5 == 0 ? "true" : "false", user);
}

static char *put_tweet(struct drawer *drawer, uint64_t number, char *p) {
    static const char *const languages[] = {"en", "es", "ja", "pt", "fr", "ar"};
    static const char *const clients[] = {"phone", "web", "tablet", "deck"};
    uint32_t user = drawer_skewed(drawer, USERS);
    uint32_t words = 4 + drawer_below(drawer, 16);
    uint32_t tag = drawer_skewed(drawer, TAGS);
    bool tagged = drawer_chance(drawer, 30);
    uint32_t second = (uint32_t)(number / 20 % 86400);
    uint64_t id = 505874924095815681 + number * 4194304;
    p = put_date(put(p, "{\"created_at\":{\"$date\":\""), 16313 + (int64_t)(number / 20 / 86400));
    p = put(p, "T%02u:%02u:%02uZ\"},\"id\":%" PRIu64 ",\"id_str\":\"%" PRIu64 "\",\"text\":\"",
            second / 3600, second / 60 % 60, second % 60, id, id);
    p = put_words(drawer, p, words);
    p = tagged ? put(p, " #tag%u", tag) : p;
    const char *client = clients[drawer_skewed(drawer, 4)];
    uint32_t retweets = drawer_skewed(drawer, 300);
    uint32_t favorites = drawer_skewed(drawer, 500);
    const char *language = languages[drawer_skewed(drawer, 6)];
    p = put(p,
            "\",\"source\":\"<a href=\\\"http://client.example/%s\\\" rel=\\\"nofollow\\\">"
            "Client</a>\",\"truncated\":false,\"in_reply_to_status_id\":null,"
            "\"in_reply_to_user_id\":null,\"retweet_count\":%u,\"favorite_count\":%u,"
            "\"lang\":\"%s\",\"entities\":{\"hashtags\":[",
            client, retweets, favorites, language);
    p = tagged ? put(p, "{\"text\":\"tag%u\",\"indices\":[3,10]}", tag) : p;
    p = put_user(drawer, user, put(p, "],\"urls\":[],\"user_mentions\":[]},"));
    return put(p, "\"geo\":null,\"coordinates\":null,\"place\":null,\"favorited\":false,"
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
