/* write: serves WRITE. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file/replace.h"
#include "link/fields.h"
#include "link/loop.h"
#include "link/reply.h"
#include "link/stream.h"
#include "message.h"
#include "requests.h"

struct writing {
  struct stream stream;
  struct replace replace;
  char path[]; /* as asked */
};

static void release(struct writing *writing) {
  stream_close(&writing->stream);
  replace_cancel(&writing->replace);
  free(writing);
}

static void on_data(struct stream *stream, const uint8_t *bytes, size_t length) {
  struct writing *writing = container_of(stream, struct writing, stream);
  const char *stage;
  int err = replace_write(&writing->replace, bytes, length, &stage);
  if (err == 0) {
    stream_consume(stream, length);
    return;
  }
  reply_errno(stream->number, stage, err, writing->path);
  release(writing);
}

static void on_end(struct stream *stream) {
  struct writing *writing = container_of(stream, struct writing, stream);
  const char *stage;
  struct stat st;
  int err = replace_commit(&writing->replace, &stage);
  if (err == 0 && stat(writing->path, &st) < 0) err = errno;
  if (err == 0) reply_entry(MSG_OK, stream->number, writing->path, &st, NULL);
  else reply_errno(stream->number, stage, err, writing->path);
  release(writing);
}

static void on_cancel(struct stream *stream) {
  release(container_of(stream, struct writing, stream));
}

static const struct stream_ops ops = {.data = on_data, .end = on_end, .cancel = on_cancel};

void request_write(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", owner[FIELDS_OWNER_SIZE] = "", new_owner[FIELDS_OWNER_SIZE] = "";
  uint32_t mode = REPLACE_SAME_MODE, parents = 0, exclusive = 0;
  const struct fields_want want[] = {
      FIELDS_PATH(WRITE_path, path),       FIELDS_U32(WRITE_mode, &mode),
      FIELDS_STR(WRITE_owner, owner),      FIELDS_U32(WRITE_parents, &parents),
      FIELDS_U32(WRITE_exclusive, &exclusive), FIELDS_STR(WRITE_new_owner, new_owner),
  };
  struct user_ids ids, new_ids;
  bool owned, new_owned;
  if (!fields_read(req, want, 6) || !path_owner(req->stream, owner, &ids, &owned)) return;
  if (!path_owner(req->stream, owned ? "" : new_owner, &new_ids, &new_owned)) return;
  struct writing *writing = reply_calloc(req->stream, sizeof *writing + strlen(path) + 1);
  if (writing == NULL) return;
  strcpy(writing->path, path);
  const char *stage;
  const struct replace_want file = {
      .path = path, .mode = mode, .owner = owned ? &ids : NULL, .new_owner = new_owned ? &new_ids : NULL,
      .parents = parents != 0, .exclusive = exclusive != 0, .follow = true,
  };
  int err = replace_begin(&writing->replace, &file, &stage);
  if (err != 0) reply_errno(req->stream, stage, err, path);
  if (err != 0 || !stream_open(&writing->stream, req->stream, &ops)) {
    replace_cancel(&writing->replace);
    free(writing);
    return;
  }
  reply_opened(req->stream);
}
