/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the libraries that end the process when an allocation fails: libbson by abort(),
 * libarchive by exit(1). The programs exit with SL_EXIT_RESOURCES instead. A load that ends in this
 * way can be resumed, as after SIGKILL. */
#ifndef SHARDLOAD_CLI_MEMORY_H
#define SHARDLOAD_CLI_MEMORY_H

/* Call it once, at the beginning of main. */
void sl_memory_begin(void);

/* Call it at the end of main, with the program's exit code; returns it. */
int sl_memory_end(int code);

#endif
