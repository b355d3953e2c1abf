/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a load before its first document. Internal to src/load. */
#ifndef SHARDLOAD_PREPARING_H
#define SHARDLOAD_PREPARING_H

#include "record.h"

/* Connects to the cluster of the configuration. */
bool sl_load_connect(sl_load *load, sl_error *error);

/* Creates and shards the collection, stops the balancer, numbers the sources, and splits and places
 * the ranges. All checks that can refuse the load come first. */
bool sl_load_prepare(sl_load *load, sl_error *error);

/* Numbers the sources of a load into another sink. */
bool sl_load_prepare_offline(sl_load *load, sl_error *error);

#endif
