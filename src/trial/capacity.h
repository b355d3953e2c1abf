/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity models: numbers in YAML, to which one law is applied, with their ranges, beside
 * published figures. Arithmetic only: no measurement and no connection.
 *
 *   title: Weather records on one server
 *   about: What was published, and where.
 *   answer: load
 *   inputs:
 *     documents: {value: 2.5G, from: published, unit: documents}
 *     rate: {value: 85k, low: 60k, high: 90k, from: assumed, unit: documents/s, note: a guess}
 *   results:
 *     load: {work: [documents], rate: [rate], unit: s, published: 37188, note: in the text}
 *   points:
 *     - {name: twice the data, set: {documents: 5G}, published: {load: 74000}}
 *
 * The law of a result, in which a missing list counts for nothing:
 *
 *   the sum of `sum` + the largest of `slowest`
 *       + (the product of `work` * copies(`copies`)) / (the product of `rate` * units(`units`))
 *
 * copies(n, cost) is 1 + cost (n - 1): the work for n copies of each document. units(n, contention,
 * coherency) is n / (1 + contention (n - 1) + coherency n (n - 1)): the speed of n units relative
 * to one, by the universal scalability law. */
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
#define SL_CAPACITY_TERMS_MAX 8 /* of a list of a result */
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
    double value, low, high; /* not negative */
    sl_capacity_origin origin;
    char note[240];
} sl_capacity_input;

/* A figure to compare with a computed one; NAN: none. `fitted` is a figure to which an input was
 * fitted, so its computed value is not a prediction. */
typedef struct sl_capacity_figure {
    double published, fitted;
} sl_capacity_figure;

/* What a result is computed from: a number, an input, or a result before it. */
typedef struct sl_capacity_term {
    enum { SL_TERM_NUMBER, SL_TERM_INPUT, SL_TERM_RESULT } kind;
    size_t index;  /* of the input or result */
    double number; /* of SL_TERM_NUMBER */
} sl_capacity_term;

typedef struct sl_capacity_terms {
    sl_capacity_term of[SL_CAPACITY_TERMS_MAX];
    size_t count;
} sl_capacity_terms;

typedef struct sl_capacity_result {
    char name[SL_CAPACITY_NAME_ROOM];
    char unit[24]; /* "s" and "bytes" are shown in larger units */
    sl_capacity_terms sum, slowest, work, copies, rate, units;
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
    bool fitted;         /* it depends on a fitted input */
    const char *decided; /* the name of the largest of `slowest`, in the model; "" without one */
} sl_capacity_value;

/* The speed of n units, relative to one, by the universal scalability law. */
double sl_capacity_speed(double n, double contention, double coherency);

/* Parses a number: "85k". The suffixes k, M, G, T and P are powers of 1000. */
bool sl_capacity_number(const char *text, size_t length, double *number);

/* Computes all results, in order. `set` has a value for each input, NAN to keep the model's; or is
 * NULL. The range of a value contains all values that inputs within their ranges give. Errors are
 * of class SL_EXIT_USAGE. */
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

/* Reads a model from YAML, and computes it once, so that wrong numbers are found. `name` is the
 * file name in messages: "isd.yaml:12:5: expected ...". Errors are of class SL_EXIT_USAGE. */
bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error);

/* Reads the built-in model `name` (from models/, like "isd-one-server"), or the file of that
 * name. */
bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error);

#endif
