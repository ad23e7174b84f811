/* file: serves the short requests about one path. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/path.h"
#include "link/fields.h"
#include "link/link.h"
#include "link/reply.h"
#include "requests.h"

enum { FILE_MAX_MODE = 07777 };

void request_stat(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint32_t follow = 0;
  const struct fields_want want[] = {FIELDS_PATH(STAT_path, path), FIELDS_U32(STAT_follow, &follow)};
  if (!fields_read(req, want, 2)) return;
  struct stat st;
  if (!follow) reply_path(req->stream, path);
  else if (stat(path, &st) < 0) reply_errno(req->stream, "stat", errno, path);
  else reply_entry(MSG_OK, req->stream, path, &st, NULL);
}

/* ERROR for something that could not be made at the path. */
static void blame(uint32_t stream, const char *stage, int err, const char *path) {
  char blamed[FIELDS_PATH_SIZE];
  path_blamed(err, path, blamed);
  reply_errno_at(stream, stage, err, blamed);
}

void request_mkdir(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", owner[FIELDS_OWNER_SIZE] = "";
  uint32_t parents = 0, mode = 0755;
  const struct fields_want want[] = {FIELDS_PATH(MKDIR_path, path), FIELDS_U32(MKDIR_parents, &parents),
                                     FIELDS_U32(MKDIR_mode, &mode), FIELDS_STR(MKDIR_owner, owner)};
  struct user_ids ids;
  bool owned;
  if (!fields_read(req, want, 4) || !path_owner(req->stream, owner, &ids, &owned)) return;
  char dir[FIELDS_PATH_SIZE], name[256];
  int err = 0;
  if (parents && path_split(path, dir, name) == 0) err = path_make(dir, owned ? &ids : NULL);
  if (err == 0 && mkdir(path, 0700) < 0) {
    struct stat st;
    err = errno;
    bool there = err == EEXIST && parents && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (there) {
      reply_path(req->stream, path);
      return;
    }
  } else if (err == 0) {
    if (owned && lchown(path, ids.uid, ids.gid) < 0) err = errno;
    else if (chmod(path, mode & FILE_MAX_MODE) < 0) err = errno;
    if (err != 0) rmdir(path);
  }
  if (err != 0) blame(req->stream, "mkdir", err, path);
  else reply_path(req->stream, path);
}

void request_chmod(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint32_t mode = UINT32_MAX;
  const struct fields_want want[] = {FIELDS_PATH(CHMOD_path, path), FIELDS_U32(CHMOD_mode, &mode)};
  if (!fields_read(req, want, 2)) return;
  if (mode > FILE_MAX_MODE) fields_bad(req, "mode is missing or out of range");
  else if (chmod(path, mode) < 0) reply_errno(req->stream, "chmod", errno, path);
  else reply_path(req->stream, path);
}

void request_chown(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", owner[FIELDS_OWNER_SIZE] = "";
  const struct fields_want want[] = {FIELDS_PATH(CHOWN_path, path), FIELDS_STR(CHOWN_owner, owner)};
  struct user_ids ids;
  bool owned;
  if (!fields_read(req, want, 2) || !path_owner(req->stream, owner, &ids, &owned)) return;
  if (!owned) fields_bad(req, "owner is missing");
  else if (chown(path, ids.uid, ids.gid) < 0) reply_errno(req->stream, "chown", errno, path);
  else reply_path(req->stream, path);
}

void request_symlink(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", target[FIELDS_PATH_SIZE] = "";
  const struct fields_want want[] = {FIELDS_PATH(SYMLINK_path, path), FIELDS_STR(SYMLINK_target, target)};
  if (!fields_read(req, want, 2)) return;
  if (target[0] == 0) fields_bad(req, "target is missing");
  else if (symlink(target, path) < 0) blame(req->stream, "symlink", errno, path);
  else reply_path(req->stream, path);
}

void request_realpath(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", real[PATH_MAX];
  const struct fields_want want[] = {FIELDS_PATH(REALPATH_path, path)};
  if (!fields_read(req, want, 1)) return;
  if (realpath(path, real) == NULL) {
    reply_errno(req->stream, "realpath", errno, path);
    return;
  }
  struct wire_out out = WIRE_OUT(PATH_MAX + 16);
  wire_put_str(&out, OK_path, real);
  link_send(MSG_OK, req->stream, out.buf, out.len);
}
