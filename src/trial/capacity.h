/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity models: formulas over labelled inputs, read from YAML, and computed with their ranges
 * beside published figures. Arithmetic only: no measurement and no connection.
 *
 *   title: Weather records on one server
 *   about: What was published, and where.
 *   answer: load
 *   inputs:
 *     documents: {value: 2.5G, from: published, unit: documents}
 *     rate: {value: 85k, low: 60k, high: 90k, from: assumed, unit: documents/s, note: a guess}
 *   results:
 *     load: {is: documents / rate, unit: s, published: 37188, note: in the text}
 *   points:
 *     - {name: twice the data, set: {documents: 5G}, published: {load: 74000}} */
#ifndef SHARDLOAD_CAPACITY_H
#define SHARDLOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>

#include <bson/bson.h>

#include "util/error.h"
#include "util/estimate.h"

#define SL_CAPACITY_INPUTS_MAX 40
#define SL_CAPACITY_RESULTS_MAX 24
#define SL_CAPACITY_POINTS_MAX 24
#define SL_CAPACITY_NAME_ROOM 40

/* The origin of an input. */
typedef enum sl_capacity_origin {
    SL_ORIGIN_NONE,
    SL_ORIGIN_PUBLISHED, /* stated in the publication that the model describes */
    SL_ORIGIN_MEASURED,  /* by the programs of this project */
    SL_ORIGIN_FITTED,    /* chosen to reproduce a figure, which is therefore not a prediction */
    SL_ORIGIN_ASSUMED,
    SL_ORIGIN_GIVEN, /* on the command line */
    SL_ORIGINS,
} sl_capacity_origin;

extern const char *const sl_capacity_origin_names[SL_ORIGINS];

typedef struct sl_capacity_input {
    char name[SL_CAPACITY_NAME_ROOM];
    char unit[24];
    double value, low, high;
    sl_capacity_origin origin;
    char note[240];
} sl_capacity_input;

/* A figure to compare with a computed one; NAN: none. `fitted` is a figure to which an input was
 * fitted, so its computed value is not a prediction. */
typedef struct sl_capacity_figure {
    double published, fitted;
} sl_capacity_figure;

typedef struct sl_capacity_result {
    char name[SL_CAPACITY_NAME_ROOM];
    char unit[24]; /* "s" and "bytes" are shown in larger units */
    char formula[300];
    char note[300];
    sl_capacity_figure figure;
} sl_capacity_result;

/* The model with other values of some inputs. */
typedef struct sl_capacity_point {
    char name[80];
    double set[SL_CAPACITY_INPUTS_MAX]; /* NAN: as in the model */
    sl_capacity_figure figures[SL_CAPACITY_RESULTS_MAX];
} sl_capacity_point;

typedef struct sl_capacity_model {
    char name[64];
    char title[120];
    char about[1200];
    char answer_name[SL_CAPACITY_NAME_ROOM];
    size_t answer;   /* the result that a sweep shows */
    bool other_data; /* a published input was replaced: published figures do not apply */
    sl_capacity_input inputs[SL_CAPACITY_INPUTS_MAX];
    sl_capacity_result results[SL_CAPACITY_RESULTS_MAX];
    sl_capacity_point points[SL_CAPACITY_POINTS_MAX];
    size_t input_count, result_count, point_count;
} sl_capacity_model;

/* A computed result. */
typedef struct sl_capacity_value {
    sl_estimate number;
    bool fitted;      /* it depends on a fitted input */
    char decided[60]; /* of max(a, b) or min(a, b): the argument that decides; else "" */
} sl_capacity_value;

/* ---- capacity_formula.c ---- */

/* Looks a name up in `context`; false if there is none. */
typedef bool sl_capacity_lookup(void *context, const char *name, size_t length,
                                sl_capacity_value *value);

/* Computes a formula: numbers (also 85k, 2.5G), names, + - * / ( ), min(...), max(...), and
 * usl(n, contention, coherency), the speed of n units relative to one by the universal scalability
 * law. Names contain hyphens, so blanks surround a minus. The range of the value contains all
 * values that inputs within their ranges give. Errors are of class SL_EXIT_USAGE. */
bool sl_capacity_formula(const char *text, sl_capacity_lookup *lookup, void *context,
                         sl_capacity_value *value, sl_error *error);

/* Parses a number: "85k". The suffixes k, M, G, T and P are powers of 1000. */
bool sl_capacity_number(const char *text, size_t length, double *number);

/* ---- capacity.c ---- */

/* Computes all results, in order; a formula may use inputs and results before it. `set` has a value
 * for each input, NAN to keep the model's; or is NULL. */
bool sl_capacity_compute(const sl_capacity_model *model, const double *set,
                         sl_capacity_value values[SL_CAPACITY_RESULTS_MAX], sl_error *error);

/* The input named `name`, or input_count if there is none. */
size_t sl_capacity_find(const sl_capacity_model *model, const char *name, size_t length);

/* Replaces an input. If the input is a published one, published figures no longer apply. */
void sl_capacity_replace(sl_capacity_model *model, size_t input, double low, double value,
                         double high, sl_capacity_origin origin, const char *note);

/* Sets an input from "NAME=VALUE" or "NAME=LOW..VALUE..HIGH". Error messages do not contain the
 * name of the option (--set). */
bool sl_capacity_set(sl_capacity_model *model, const char *assignment, sl_error *error);

/* Appends the model, its inputs and results, its points, and if `count` is not 0 the sweep: its
 * answer for each of the values of one input. */
bool sl_capacity_append(bson_t *document, const sl_capacity_model *model, size_t input,
                        const double *values, size_t count, sl_error *error);

/* ---- capacity_model.c ---- */

/* Reads a model from YAML, and computes it once, so errors in formulas are found. `name` is the
 * file name in messages: "isd.yaml:12:5: expected ...". Errors are of class SL_EXIT_USAGE. */
bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error);

/* Reads the built-in model `name` (from models/, like "isd-one-server"), or the file of that
 * name. */
bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error);

#endif
