/*
 * holders: which process holds a socket, found by the links in /proc/PID/fd.
 *
 * Results are remembered and only verified by the next call, so that polling twice a second costs almost nothing. A search
 * is bounded in time; the next one continues where it stopped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HOLDERS_MAX = 1024 };

struct holder {
  uint64_t inode;
  pid_t pid;     /* 0: not found */
  pid_t session;
};

/* Compares structs that begin with an inode, for qsort and bsearch. */
int holders_by_inode(const void *one, const void *other);

/*
 * Fills in the holder of each inode; at most HOLDERS_MAX, sorted by inode, without duplicates. Leaves out processes that do
 * not descend from this guest: without a wall it sees the processes of the whole machine.
 */
void holders_find(struct holder *wanted, size_t count);
