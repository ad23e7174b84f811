/* setup: serves SETUP: writes the files that a sandbox needs after its root is bound. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file/replace.h"
#include "io.h"
#include "link/fields.h"
#include "link/reply.h"
#include "requests.h"

/* A path that is a mount point (some engines mount /etc/hosts) cannot be replaced, only rewritten. */
static int rewrite(const char *path, const struct wire_field *content) {
  int fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno;
  int err = io_write_all(fd, content->value, content->length) ? 0 : errno;
  close(fd);
  return err;
}

struct failure {
  int err; /* 0: none yet */
  const char *stage;
  char path[FIELDS_PATH_SIZE];
};

/* False: the request is malformed, and ERROR has been sent. */
static bool write_file(const struct wire_frame *req, const struct wire_field *record, struct failure *first) {
  char path[FIELDS_PATH_SIZE] = "", owner[FIELDS_OWNER_SIZE] = "";
  uint32_t mode = 0644;
  struct wire_field content = {0};
  const struct fields_want want[] = {FIELDS_PATH(FILE_path, path), FIELDS_ANY(FILE_content, &content),
                                     FIELDS_U32(FILE_mode, &mode), FIELDS_STR(FILE_owner, owner)};
  struct user_ids ids;
  bool owned;
  if (!fields_read_record(record, want, 4)) {
    fields_bad(req, "a file is malformed");
    return false;
  }
  if (!path_owner(req->stream, owner, &ids, &owned)) return false;
  struct replace replace;
  const char *stage;
  const struct replace_want file = {.path = path, .mode = mode, .owner = owned ? &ids : NULL, .parents = true, .any = true};
  int err = replace_begin(&replace, &file, &stage);
  if (err == 0) err = replace_write(&replace, content.value, content.length, &stage);
  if (err == 0) err = replace_commit(&replace, &stage);
  if (err == EBUSY) err = rewrite(path, &content);
  if (err != 0 && first->err == 0) {
    *first = (struct failure){.err = err, .stage = stage};
    strcpy(first->path, path);
  }
  return true;
}

void request_setup(const struct wire_frame *req) {
  struct wire_cursor cursor = fields_begin(req);
  struct wire_field record;
  struct failure first = {0};
  if (!fields_read(req, NULL, 0)) return;
  /* A file that cannot be written does not keep the others from being written. */
  while (fields_each(&cursor, SETUP_file, &record)) {
    if (!write_file(req, &record, &first)) return;
  }
  if (first.err != 0) reply_errno(req->stream, first.stage, first.err, first.path);
  else reply_ok(req->stream);
}
