/* list: serves LIST, in a worker. Directories are walked depth first; symlinks are not followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/path.h"
#include "io.h"
#include "link/fields.h"
#include "link/link.h"
#include "link/reply.h"
#include "link/worker.h"
#include "message.h"
#include "requests.h"

enum {
  LIST_BATCH = 32 * 1024,             /* payload bytes at which an ENTRIES frame is sent */
  LIST_ENTRY = 2 * PATH_MAX + 256,    /* the most one entry takes */
};

struct listing {
  char path[FIELDS_PATH_SIZE];
  uint32_t depth;
  uint64_t limit;
};

struct walk {
  uint32_t stream;
  uint64_t count, limit;
  bool truncated;
  char path[PATH_MAX]; /* of the current entry, relative to the listed directory */
  uint8_t batch[LIST_BATCH + LIST_ENTRY];
  struct wire_out out;
};

static void flush(struct walk *walk) {
  if (walk->out.len > 0) link_send(MSG_ENTRIES, walk->stream, walk->batch, walk->out.len);
  walk->out = (struct wire_out){walk->batch, 0, sizeof walk->batch, false};
}

static void add(struct walk *walk, int dir, const char *name, const struct stat *st) {
  char target[PATH_MAX];
  ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(dir, name, target, sizeof target - 1) : -1;
  if (n >= 0) target[n] = 0;
  reply_put_entry(&walk->out, ENTRIES_entry, walk->path, st, n >= 0 ? target : NULL);
  walk->count++;
  if (walk->out.len >= LIST_BATCH) flush(walk);
}

/* Leaves out entries that disappear meanwhile or cannot be opened. Takes over the fd. */
static void walk_directory(struct walk *walk, int fd, size_t length, uint32_t depth) {
  AUTO_CLOSE_DIR DIR *dir = io_take_dir(fd);
  struct dirent *entry;
  while (!walk->truncated && (entry = io_next_entry(dir)) != NULL) {
    const char *name = entry->d_name;
    size_t name_length = strlen(name);
    struct stat st;
    if (length + 1 + name_length >= sizeof walk->path) continue;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (S_ISREG(st.st_mode) && path_is_temp(name))) continue;
    if (walk->limit != 0 && walk->count == walk->limit) {
      walk->truncated = true;
      break;
    }
    size_t at = length;
    if (at > 0) walk->path[at++] = '/';
    memcpy(walk->path + at, name, name_length + 1);
    add(walk, fd, name, &st);
    if (!S_ISDIR(st.st_mode) || depth <= 1) continue;
    int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0) walk_directory(walk, below, at + name_length, depth - 1);
  }
}

static void job(uint32_t stream, const void *arg) {
  const struct listing *listing = arg;
  static struct walk walk; /* large, and there is one per worker */
  walk.stream = stream;
  walk.limit = listing->limit;
  walk.out = (struct wire_out){walk.batch, 0, sizeof walk.batch, false};
  int fd = open(listing->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    reply_errno(stream, "open", errno, listing->path);
    return;
  }
  walk_directory(&walk, fd, 0, listing->depth);
  flush(&walk);
  struct wire_out out = WIRE_OUT(32);
  wire_put_u64(&out, OK_count, walk.count);
  wire_put_u32(&out, OK_truncated, walk.truncated);
  link_send(MSG_OK, stream, out.buf, out.len);
}

void request_list(const struct wire_frame *req) {
  struct listing listing = {.depth = 1};
  const struct fields_want want[] = {FIELDS_PATH(LIST_path, listing.path), FIELDS_U32(LIST_depth, &listing.depth),
                                     FIELDS_U64(LIST_limit, &listing.limit)};
  if (!fields_read(req, want, 3)) return;
  worker_start(req->stream, job, &listing, false);
}
