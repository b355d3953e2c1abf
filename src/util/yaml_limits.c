/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the limits while parsing a YAML text into events. The parser reads ahead by at most one
 * line of 1,024 characters, so the pass ends before deep nesting makes it slow. */
#include "yaml_limits.h"

static bool refuse(const char *file, const yaml_mark_t *mark, const char *reason, sl_exit code,
                   sl_error *error) {
    return sl_error_set(error, code,
                        "%s:%zu: %s; simplify the file, or check that it is the right file", file,
                        mark->line + 1, reason);
}

bool sl_yaml_within_limits(sl_text text, const char *file, sl_exit code, sl_error *error) {
    if (text.length > SL_YAML_BYTES_MAX)
        return sl_error_set(error, code, "%s: larger than %d MiB; is it the right file?", file,
                            SL_YAML_BYTES_MAX >> 20);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return sl_error_memory(error, "reading YAML");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.bytes, text.length);
    yaml_event_t event;
    unsigned depth = 0, anchors = 0;
    bool ok = true;
    for (bool more = true; more && ok && yaml_parser_parse(&parser, &event);) {
        const yaml_char_t *anchor = NULL;
        more = event.type != YAML_STREAM_END_EVENT && event.type != YAML_NO_EVENT;
        if (event.type == YAML_SEQUENCE_START_EVENT) {
            anchor = event.data.sequence_start.anchor;
            depth++;
        } else if (event.type == YAML_MAPPING_START_EVENT) {
            anchor = event.data.mapping_start.anchor;
            depth++;
        } else if (event.type == YAML_SCALAR_EVENT) {
            anchor = event.data.scalar.anchor;
        } else if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            depth--;
        }
        anchors += anchor != NULL;
        if (depth > SL_YAML_DEPTH_MAX)
            ok = refuse(file, &event.start_mark, "more than 64 nested lists and mappings", code,
                        error);
        else if (anchors > SL_YAML_ANCHORS_MAX)
            ok = refuse(file, &event.start_mark, "more than 1,000 anchors", code, error);
        yaml_event_delete(&event);
    }
    if (ok && parser.error != YAML_NO_ERROR && !parser.problem)
        ok = sl_error_memory(error, "reading YAML");
    yaml_parser_delete(&parser);
    return ok;
}

bool sl_yaml_read_document(sl_text text, const char *file, yaml_document_t *document,
                           sl_error *error) {
    if (!sl_yaml_within_limits(text, file, SL_EXIT_USAGE, error))
        return false;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return sl_error_memory(error, "reading YAML");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.bytes, text.length);
    bool read = yaml_parser_load(&parser, document);
    if (!read && !parser.problem) /* all other errors have one */
        sl_error_memory(error, "reading YAML");
    else if (!read)
        sl_error_set(error, SL_EXIT_USAGE, "%s:%zu:%zu: not YAML: %s", file,
                     parser.problem_mark.line + 1, parser.problem_mark.column + 1, parser.problem);
    yaml_parser_delete(&parser);
    return read;
}
