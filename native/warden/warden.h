/*
 * warden: what its files share. main.c runs the loop, request.c decodes and checks, every other file does one job.
 *
 * A handler answers with 0 and fields in `ok`, or with -1 after one of the fail_* functions said why. Nothing here
 * exits after boot, and nothing makes a path from anything but a checked name below a directory opened at boot.
 */
#ifndef ISLET_WARDEN_H
#define ISLET_WARDEN_H

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
  int scratch_fd; /* a tmpfs only we see, at `run` in our own mount namespace */
  char scratch[256];
  const char *run;          /* where that is */
  name_t cgroup; /* our parent group in every hierarchy */
  char bridge[MAX_INTERFACE + 1];
  const char *cells;       /* directory of the cells' bundles; these three are NULL together */
  const char *runtime;      /* the OCI runtime's program */
  const char *runtime_root; /* where it keeps its state */
  uint32_t uid_start;
  uint32_t uid_count; /* in ranges of UIDS_PER_SANDBOX */
  enum clone_method method;
  bool quota;        /* disk limits are enforced */
  bool portable;     /* mount the way older kernels can (--portable, or found out) */
};

extern struct warden warden;

struct fail {
  uint32_t kind;
  int err;
  const char *stage;
  char message[FAIL_MESSAGE_BYTES];
};

/* Both return -1. fail_errno takes the kind from errno; fail_kind has no errno. */
int fail_errno(struct fail *fail, const char *stage, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fail_kind(struct fail *fail, uint32_t kind, const char *stage, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

uint64_t now_us(void);

#endif
