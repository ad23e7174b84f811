#include "request.h"

#include <arpa/inet.h>
#include <string.h>

static int bad(struct fail *fail, const char *what) {
  return fail_kind(fail, KIND_BAD_REQUEST, "request", "%s", what);
}

static bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_name(const char *text) {
  if (!is_lower_alnum(text[0])) return false;
  for (const char *c = text; *c; c++) {
    if (!is_lower_alnum(*c) && *c != '-') return false;
  }
  return true;
}

static bool read_name(const struct wire_field *field, char *out, size_t size) {
  return wire_str(field, out, size) && is_name(out);
}

static bool is_hostname(const char *text) {
  if (text[0] == 0 || text[0] == '-' || text[0] == '.') return false;
  for (const char *c = text; *c; c++) {
    if (!is_lower_alnum(*c) && !(*c >= 'A' && *c <= 'Z') && *c != '-' && *c != '.') return false;
  }
  return true;
}

/* "/", or a directory directly below it that is not a mount of the cell itself. */
static bool is_at(const char *text) {
  static const char *const taken[] = {"/proc", "/dev", "/sys", "/.islet", "/tmp"};
  if (strcmp(text, "/") == 0) return true;
  if (text[0] != '/' || !is_name(text + 1)) return false;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    if (strcmp(text, taken[i]) == 0) return false;
  }
  return true;
}

static bool read_address(const struct wire_field *field, uint32_t *out) {
  char text[INET_ADDRSTRLEN];
  struct in_addr address;
  if (!wire_str(field, text, sizeof text) || inet_pton(AF_INET, text, &address) != 1) return false;
  *out = address.s_addr;
  return true;
}

static struct wire_cursor cursor_of(const uint8_t *value, uint32_t length) {
  return (struct wire_cursor){value, value + length};
}

static bool decode_lower(const struct wire_field *record, struct lower *lower) {
  struct wire_cursor cursor = cursor_of(record->value, record->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    bool good = true;
    if (field.tag == REC_LOWER_kind) good = wire_u32(&field, &lower->kind);
    if (field.tag == REC_LOWER_name) good = read_name(&field, lower->name, sizeof lower->name);
    if (field.tag == REC_LOWER_tree) good = read_name(&field, lower->tree, sizeof lower->tree);
    if (!good) return false;
  }
  if (more < 0) return false;
  if (lower->kind == LOWER_HOST_USR) return lower->name[0] == 0 && lower->tree[0] == 0;
  return (lower->kind == LOWER_LAYER || lower->kind == LOWER_IMAGE) && lower->name[0] && lower->tree[0];
}

static bool decode_tree(const struct wire_field *record, struct tree *tree) {
  struct wire_cursor cursor = cursor_of(record->value, record->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    bool good = true;
    if (field.tag == REC_TREE_tree) good = read_name(&field, tree->tree, sizeof tree->tree);
    if (field.tag == REC_TREE_at) good = wire_str(&field, tree->at, sizeof tree->at) && is_at(tree->at);
    if (field.tag == REC_TREE_lower) {
      good = tree->lowers < MAX_LOWERS && decode_lower(&field, &tree->lower[tree->lowers++]);
    }
    if (!good) return false;
  }
  return more == 0 && tree->tree[0] && tree->at[0] && tree->lowers > 0;
}

static bool decode_limits(const struct wire_field *record, struct limits *limits) {
  struct wire_cursor cursor = cursor_of(record->value, record->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    bool good = true;
    if (field.tag == REC_LIMITS_memory_bytes) {
      good = limits->has_memory = wire_u64(&field, &limits->memory_bytes) && limits->memory_bytes <= INT64_MAX;
    }
    if (field.tag == REC_LIMITS_cpu_millis) {
      good = limits->has_cpu = wire_u32(&field, &limits->cpu_millis) && limits->cpu_millis <= 1024 * 1000;
    }
    if (field.tag == REC_LIMITS_pids) good = limits->has_pids = wire_u32(&field, &limits->pids);
    if (!good) return false;
  }
  return more == 0;
}

static bool decode_network(const struct wire_field *record, struct network *network) {
  struct wire_cursor cursor = cursor_of(record->value, record->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    bool good = true;
    if (field.tag == REC_NETWORK_veth) good = read_name(&field, network->veth, sizeof network->veth);
    if (field.tag == REC_NETWORK_address) good = read_address(&field, &network->address);
    if (field.tag == REC_NETWORK_gateway) good = read_address(&field, &network->gateway);
    if (field.tag == REC_NETWORK_prefix) good = wire_u32(&field, &network->prefix);
    if (!good) return false;
  }
  return more == 0 && network->veth[0] && network->address && network->gateway && network->prefix >= 1 &&
         network->prefix <= 32;
}

/* A name that may contain dots: a plain file name, never a path. */
static bool read_file_name(const struct wire_field *field, name_t out) {
  if (!wire_str(field, out, sizeof(name_t)) || !is_lower_alnum(out[0])) return false;
  for (const char *c = out; *c; c++) {
    if (!is_lower_alnum(*c) && *c != '-' && *c != '.') return false;
  }
  return true;
}

static bool decode_etc(const struct wire_field *record, struct etc_file *file) {
  struct wire_cursor cursor = cursor_of(record->value, record->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    if (field.tag == REC_ETC_FILE_name && !read_file_name(&field, file->name)) return false;
    if (field.tag == REC_ETC_FILE_content) {
      file->content = field.value;
      file->length = field.length;
    }
  }
  return more == 0 && file->name[0] && file->length <= MAX_ETC_FILE_BYTES;
}

static bool read_flag(const struct wire_field *field, bool *out) {
  uint32_t value;
  if (!wire_u32(field, &value) || value > 1) return false;
  *out = value == 1;
  return true;
}

static bool bind_field(const struct wire_field *field, struct bind *bind) {
  switch (field->tag) {
    case TAG_BIND_pid: return wire_u32(field, &bind->pid);
    case TAG_BIND_uid_base: return wire_u32(field, &bind->uid_base);
    case TAG_BIND_layer: return read_name(field, bind->layer, sizeof bind->layer);
    case TAG_BIND_tree: return bind->trees < MAX_TREES && decode_tree(field, &bind->tree[bind->trees++]);
    case TAG_BIND_hostname: return wire_str(field, bind->hostname, sizeof bind->hostname) && is_hostname(bind->hostname);
    case TAG_BIND_cgroup: return read_name(field, bind->cgroup, sizeof bind->cgroup);
    case TAG_BIND_limits: return decode_limits(field, &bind->limits);
    case TAG_BIND_etc: return bind->etcs < MAX_ETC_FILES && decode_etc(field, &bind->etc[bind->etcs++]);
    case TAG_BIND_network: return bind->has_network = decode_network(field, &bind->network);
    default: return true;
  }
}

static bool run_field(const struct wire_field *field, struct request *r) {
  switch (field->tag) {
    case TAG_CELL_RUN_cell: return read_name(field, r->name, sizeof r->name);
    case TAG_CELL_RUN_uid_base: return wire_u32(field, &r->bind.uid_base);
    case TAG_CELL_RUN_layer: return read_name(field, r->bind.layer, sizeof r->bind.layer);
    case TAG_CELL_RUN_tree: return r->bind.trees < MAX_TREES && decode_tree(field, &r->bind.tree[r->bind.trees++]);
    case TAG_CELL_RUN_network: return r->bind.has_network = decode_network(field, &r->bind.network);
    case TAG_CELL_RUN_restore: return read_flag(field, &r->flag);
    default: return true;
  }
}

static int check_uids(uint32_t uid_base, struct fail *fail) {
  uint64_t start = warden.uid_start, end = start + (uint64_t)warden.uid_count * UIDS_PER_SANDBOX;
  bool ours = uid_base >= start && (uint64_t)uid_base + UIDS_PER_SANDBOX <= end;
  return ours ? 0 : bad(fail, "uid_base is outside of this warden's range");
}

static int check_root(const struct bind *bind, struct fail *fail) {
  if (bind->layer[0] == 0) return bad(fail, "layer is missing");
  if (bind->trees == 0 || strcmp(bind->tree[0].at, "/") != 0) return bad(fail, "the first tree must be at /");
  for (unsigned i = 0; i < bind->trees; i++) {
    for (unsigned j = 0; j < i; j++) {
      if (strcmp(bind->tree[i].at, bind->tree[j].at) == 0) return bad(fail, "two trees have the same mount point");
      if (strcmp(bind->tree[i].tree, bind->tree[j].tree) == 0) return bad(fail, "two trees have the same name");
    }
  }
  return check_uids(bind->uid_base, fail);
}

static int check_pid(uint32_t pid, struct fail *fail) {
  return pid < 2 || pid > INT32_MAX ? bad(fail, "pid is missing or out of range") : 0;
}

static int check_bind(const struct bind *bind, struct fail *fail) {
  return check_pid(bind->pid, fail) < 0 ? -1 : check_root(bind, fail);
}

static int check_run(const struct request *r, struct fail *fail) {
  if (r->name[0] == 0) return bad(fail, "the name is missing");
  return check_root(&r->bind, fail);
}

static bool read_from(const struct wire_field *field, struct request *request) {
  return request->froms < MAX_LOWERS && read_name(field, request->from[request->froms++], sizeof(name_t));
}

static bool read_limit(const struct wire_field *field, uint64_t *out) {
  return wire_u64(field, out) && *out <= INT64_MAX;
}

/* One field of any request except BIND and CELL_RUN. */
static bool plain_field(const struct wire_field *field, struct request *r) {
#define IN(message, name) (r->code == MSG_##message && field->tag == TAG_##message##_##name)
  if (IN(HELLO, generation)) return wire_u32(field, &r->generation);
  if (IN(LAYER_CREATE, layer) || IN(LAYER_CLONE, from) || IN(LAYER_DELETE, layer) || IN(LAYER_LIMIT, layer) ||
      IN(LAYER_USAGE, layer) || IN(CGROUP_LIMIT, cgroup) || IN(CGROUP_FREEZE, cgroup) || IN(CGROUP_STAT, cgroup) ||
      IN(CGROUP_KILL, cgroup) || IN(CGROUP_DELETE, cgroup) || IN(CGROUP_RECLAIM, cgroup) || IN(CELL_START, cell) ||
      IN(CELL_PAUSE, cell) || IN(CELL_SAVE, cell) || IN(CELL_SETTLE, cell)) {
    return read_name(field, r->name, sizeof r->name);
  }
  if (IN(CELL_NETWORK, pid)) return wire_u32(field, &r->bind.pid);
  if (IN(CELL_START, uid_base) || IN(CELL_NETWORK, uid_base)) return wire_u32(field, &r->uid_base);
  if (IN(CELL_START, network) || IN(CELL_NETWORK, network)) return r->has_network = decode_network(field, &r->network);
  if (IN(LAYER_CLONE, to) || IN(LAYER_FLATTEN, to)) return read_name(field, r->to, sizeof r->to);
  if (IN(LAYER_FLATTEN, from)) return read_from(field, r);
  if (IN(LAYER_CREATE, limit_bytes) || IN(LAYER_CLONE, limit_bytes) || IN(LAYER_LIMIT, limit_bytes)) {
    return read_limit(field, &r->limit_bytes);
  }
  if (IN(LAYER_CLONE, read_only) || IN(CGROUP_FREEZE, frozen) || IN(CELL_PAUSE, paused) || IN(CELL_START, background)) {
    return read_flag(field, &r->flag);
  }
  if (IN(CELL_SETTLE, hostname)) return wire_str(field, r->bind.hostname, sizeof r->bind.hostname) && is_hostname(r->bind.hostname);
  if (IN(CGROUP_LIMIT, limits) || IN(CGROUP_CEILING, limits) || IN(CELL_SETTLE, limits)) return decode_limits(field, &r->limits);
  if (IN(BRIDGE_CREATE, address) || IN(VETH_DELETE, address)) return read_address(field, &r->network.address);
  if (IN(BRIDGE_CREATE, prefix)) return wire_u32(field, &r->network.prefix);
  if (IN(VETH_DELETE, veth)) return read_name(field, r->network.veth, sizeof r->network.veth);
#undef IN
  return true;
}

static int check_plain(const struct request *r, struct fail *fail) {
  switch (r->code) {
    case MSG_HELLO:
      return r->generation == GENERATION ? 0 : bad(fail, "the server uses another generation of the protocol");
    case MSG_LAYER_CREATE:
    case MSG_LAYER_DELETE:
    case MSG_LAYER_LIMIT:
    case MSG_LAYER_USAGE:
    case MSG_CGROUP_LIMIT:
    case MSG_CGROUP_FREEZE:
    case MSG_CGROUP_STAT:
    case MSG_CGROUP_KILL:
    case MSG_CGROUP_DELETE:
    case MSG_CGROUP_RECLAIM:
    case MSG_CELL_PAUSE:
    case MSG_CELL_SAVE:
    case MSG_CELL_SETTLE:
      return r->name[0] ? 0 : bad(fail, "the name is missing");
    case MSG_CELL_START:
      return r->name[0] ? check_uids(r->uid_base, fail) : bad(fail, "the name is missing");
    case MSG_CELL_NETWORK:
      return check_pid(r->bind.pid, fail) < 0 ? -1 : check_uids(r->uid_base, fail);
    case MSG_LAYER_CLONE:
      return r->name[0] && r->to[0] ? 0 : bad(fail, "from or to is missing");
    case MSG_LAYER_FLATTEN:
      return r->froms > 0 && r->to[0] ? 0 : bad(fail, "from or to is missing");
    case MSG_BRIDGE_CREATE:
      return r->network.address && r->network.prefix >= 1 && r->network.prefix <= 30 ? 0
             : bad(fail, "address or prefix is missing or out of range");
    case MSG_VETH_DELETE:
      return r->network.veth[0] ? 0 : bad(fail, "the name is missing");
    case MSG_LAYER_LIST:
    case MSG_LAYER_SYNC:
    case MSG_CGROUP_LIST:
    case MSG_CGROUP_CEILING:
    case MSG_CGROUP_YIELD:
    case MSG_BRIDGE_DELETE:
    case MSG_VETH_LIST:
      return 0;
    default:
      return bad(fail, "there is no such request");
  }
}

static bool decode_field(const struct wire_field *field, struct request *request) {
  switch (request->code) {
    case MSG_BIND: return bind_field(field, &request->bind);
    case MSG_CELL_RUN: return run_field(field, request);
    default: return plain_field(field, request);
  }
}

int request_decode(const struct wire_frame *frame, struct request *request, struct fail *fail) {
  memset(request, 0, sizeof *request);
  request->code = frame->type;
  struct wire_cursor cursor = cursor_of(frame->payload, frame->length);
  struct wire_field field;
  int more;
  while ((more = wire_next(&cursor, &field)) > 0) {
    bool good = decode_field(&field, request);
    if (!good) return fail_kind(fail, KIND_BAD_REQUEST, "request", "field %u of request %u is not valid", field.tag, frame->type);
  }
  if (more < 0) return bad(fail, "the payload is malformed");
  switch (request->code) {
    case MSG_BIND: return check_bind(&request->bind, fail);
    case MSG_CELL_RUN: return check_run(request, fail);
    default: return check_plain(request, fail);
  }
}
