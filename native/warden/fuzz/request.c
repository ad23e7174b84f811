/* Frames and requests from a hostile server. What request_decode accepts must keep the promises of request.h. */
#include "../fail.c"
#include "../paths.c"
#include "../request.c"

#include <stdlib.h>

struct warden warden = {.uid_start = 65536, .uid_count = 1000};

static void need(bool promise) {
  if (!promise) abort();
}

static void need_name(const char *name) {
  size_t length = strlen(name);
  need(length >= 1 && length <= MAX_NAME && name[0] != '-' && name[0] != '.' && strchr(name, '/') == NULL);
  need(!path_is_temp(name));
  char work[MAX_NAME + 6];
  path_work_name(work, name);
  need(strlen(work) == length + 5);
}

static void check_etc_promises(const struct bind *bind) {
  need(bind->etcs <= MAX_ETC_FILES);
  for (unsigned i = 0; i < bind->etcs; i++) {
    const struct etc_file *file = &bind->etc[i];
    need(file->name[0] && file->name[0] != '.' && file->name[0] != '-' && strchr(file->name, '/') == NULL);
    need(file->length <= MAX_ETC_FILE_BYTES && (file->length == 0 || file->content[file->length - 1] <= 255));
  }
}

static void check_root_promises(const struct bind *bind) {
  need(bind->trees >= 1 && bind->trees <= MAX_TREES && strcmp(bind->tree[0].at, "/") == 0);
  need(bind->uid_base >= warden.uid_start);
  need_name(bind->layer);
  need(strchr(bind->hostname, '/') == NULL && strlen(bind->hostname) <= MAX_HOSTNAME);
  for (unsigned i = 0; i < bind->trees; i++) {
    const struct tree *tree = &bind->tree[i];
    need_name(tree->tree);
    need(tree->lowers >= 1 && tree->lowers <= MAX_LOWERS);
    if (i > 0) need_name(tree->at + 1);
    for (unsigned j = 0; j < tree->lowers; j++) {
      if (tree->lower[j].kind == LOWER_HOST_USR) continue;
      need_name(tree->lower[j].name);
      need_name(tree->lower[j].tree);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct request request;
  struct wire_frame frame;
  struct fail fail;
  for (long used; (used = wire_decode(data, size, &frame)) > 0; data += used, size -= (size_t)used) {
    if (request_decode(&frame, &request, &fail) < 0) {
      need(strlen(fail.message) < FAIL_MESSAGE_BYTES && fail.kind == KIND_BAD_REQUEST);
      continue;
    }
    if (request.code == MSG_BIND) need(request.bind.pid >= 2);
    check_etc_promises(&request.bind);
    if (request.code == MSG_BIND || request.code == MSG_CELL_RUN) check_root_promises(&request.bind);
    if (request.code == MSG_CELL_RUN) need(request.name[0]);
    if (request.code == MSG_CELL_START) need(request.name[0] && request.uid_base >= warden.uid_start);
    if (request.name[0]) need_name(request.name);
    if (request.to[0]) need_name(request.to);
    need(request.froms <= MAX_LOWERS);
    for (unsigned i = 0; i < request.froms; i++) need_name(request.from[i]);
    need(strlen(request.network.veth) <= MAX_INTERFACE);
  }
  return 0;
}
