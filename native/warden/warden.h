/*
 * warden: what its files share. main.c boots, loop.c reads requests, request.c decodes and checks them, every other file
 * does one job.
 *
 * A handler returns 0 and puts fields into `ok`, or returns -1 after a fail_* function recorded the reason. Nothing exits
 * after boot. Every path is made of a checked name below a directory that was opened at boot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io.h"
#include "message.h"
#include "wire.h"

enum {
  FAIL_MESSAGE_BYTES = 256,
  MAX_HOSTNAME = 64,
  MAX_INTERFACE = 15,
  MAX_AT = 64,
  MAX_HIERARCHIES = 24, /* cgroup mounts of a machine: v1 has about a dozen */
};

typedef char name_t[MAX_NAME + 1];

enum clone_method { CLONE_BY_COPY, CLONE_BY_REFLINK, CLONE_BY_BTRFS };

struct warden {
  int layers_fd;  /* <data>/pool/layers */
  int images_fd;  /* <data>/images or --images */
  int usr_fd;     /* the host's /usr */
  int scratch_fd; /* a private tmpfs, mounted at `run` in our own mount namespace */
  char scratch[256];
  const char *run;
  name_t cgroup; /* the parent of all sandboxes' groups, in every hierarchy */
  char bridge[MAX_INTERFACE + 1];
  const char *cells;       /* directory of the cells' bundles; set together with the next two, or all are NULL */
  const char *runtime;      /* the OCI runtime's program */
  const char *runtime_root; /* where it keeps its state */
  uint32_t uid_start;
  uint32_t uid_count; /* in ranges of UIDS_PER_SANDBOX */
  enum clone_method method;
  bool quota;        /* disk limits are enforced */
  bool portable;     /* mount in the way of kernels before 6.15 (--portable, or overlay_probe) */
};

extern struct warden warden;

struct fail {
  uint32_t kind;
  int err;
  const char *stage;
  char message[FAIL_MESSAGE_BYTES];
};

/* Both return -1. fail_errno derives the kind from errno; fail_kind records no errno. */
int fail_errno(struct fail *fail, const char *stage, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fail_kind(struct fail *fail, uint32_t kind, const char *stage, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

uint64_t now_us(void);
