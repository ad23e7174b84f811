/*
 * holders: which process holds a socket, found by the links in /proc/PID/fd.
 *
 * What was found is remembered and only looked at again, so that asking twice a second costs next to nothing. A search
 * is bounded in time; where it stopped, the next one goes on.
 */
#ifndef ISLET_HOLDERS_H
#define ISLET_HOLDERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HOLDERS_MAX = 1024 };

struct holder {
  uint64_t inode;
  pid_t pid;     /* 0: not found */
  pid_t session;
};

/*
 * Fills in who holds each inode; at most HOLDERS_MAX, sorted by inode, each once. Processes that do not descend from
 * this guest are not told: where there is no wall it sees those of the whole machine.
 */
void holders_find(struct holder *wanted, size_t count);

#endif
