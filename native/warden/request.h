/* request: decodes a frame from the server into checked C values. After request_decode, names match [a-z0-9][a-z0-9-]*,
 * counts are within their maxima and required fields are present. */
#pragma once

#include "warden.h"

enum { LOWER_LAYER = 1, LOWER_IMAGE = 2, LOWER_HOST_USR = 3 };

struct lower {
  uint32_t kind;
  name_t name;
  name_t tree;
};

struct tree {
  name_t tree;
  char at[MAX_AT]; /* "/" or "/usr" */
  struct lower lower[MAX_LOWERS];
  unsigned lowers;
};

struct limits {
  bool has_memory, has_cpu, has_pids;
  uint64_t memory_bytes;
  uint32_t cpu_millis;
  uint32_t pids;
};

struct network {
  char veth[MAX_INTERFACE + 1];
  uint32_t address, gateway; /* network byte order */
  uint32_t prefix;
};

/* `content` points into the frame. */
struct etc_file {
  name_t name;
  const uint8_t *content;
  uint32_t length;
};

struct bind {
  uint32_t pid;
  uint32_t uid_base;
  name_t layer;
  struct tree tree[MAX_TREES]; /* the first one is "/" */
  unsigned trees;
  char hostname[MAX_HOSTNAME + 1];
  name_t cgroup; /* empty: do not change the limits */
  struct limits limits;
  bool has_network;
  struct network network;
  struct etc_file etc[MAX_ETC_FILES];
  unsigned etcs;
};

struct request {
  uint8_t code;
  uint32_t generation;
  name_t name; /* the layer, cgroup or cell; LAYER_CLONE: from */
  name_t to;
  name_t from[MAX_LOWERS];
  unsigned froms;
  uint64_t limit_bytes;
  bool flag; /* read_only, frozen, restore, paused, background */
  uint32_t uid_base; /* CELL_START, CELL_NETWORK */
  struct limits limits;
  bool has_network; /* CELL_START, CELL_NETWORK */
  struct network network; /* BRIDGE_CREATE: address and prefix; VETH_DELETE: veth */
  struct bind bind; /* CELL_RUN too, without pid, hostname and cgroup; CELL_SETTLE: the hostname; CELL_NETWORK: the pid */
};

/* 0, or -1 with fail set. The request points into the frame. */
int request_decode(const struct wire_frame *frame, struct request *request, struct fail *fail);
