/* tar_out: serves TAR_OUT, in a worker: sends a file or a directory as an archive. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file/hardlinks.h"
#include "file/path.h"
#include "io.h"
#include "link/fields.h"
#include "link/link.h"
#include "link/reply.h"
#include "link/stream.h"
#include "link/worker.h"
#include "message.h"
#include "requests.h"
#include "tar/tar.h"

enum {
  TAR_OUT_CHUNK = WORKER_MAX_PAYLOAD,
  TAR_OUT_MAX_OCTAL_ID = 07777777,
  TAR_OUT_PAX = 2 * PATH_MAX + 256,
};
static const int64_t MAX_OCTAL_SIZE = 077777777777;

/* One archive per worker. */
static struct {
  uint32_t stream;
  uint8_t chunk[TAR_OUT_CHUNK];
  size_t length;
  struct hardlinks links;
  char path[PATH_MAX]; /* of the current entry, relative to the root of the archive */
} archive;

static void refuse(const char *stage, int err) __attribute__((noreturn));
static void refuse(const char *stage, int err) {
  reply_errno(archive.stream, stage, err, archive.path);
  _exit(0);
}

static void flush(void) {
  if (archive.length > 0) link_send(MSG_DATA, archive.stream, archive.chunk, archive.length);
  archive.length = 0;
}

static void put(const void *bytes, size_t length) {
  while (length > 0) {
    size_t part = TAR_OUT_CHUNK - archive.length < length ? TAR_OUT_CHUNK - archive.length : length;
    memcpy(archive.chunk + archive.length, bytes, part);
    archive.length += part;
    bytes = (const char *)bytes + part;
    length -= part;
    if (archive.length == TAR_OUT_CHUNK) flush();
  }
}

static void pad(uint64_t content) {
  static const char zeros[TAR_BLOCK];
  if (content % TAR_BLOCK != 0) put(zeros, TAR_BLOCK - content % TAR_BLOCK);
}

/* Fills the field except its last byte, which stays NUL. */
static void octal(char *field, size_t size, uint64_t value) {
  for (size_t i = size - 1; i > 0; i--, value >>= 3) field[i - 1] = (char)('0' + (value & 7));
}

static void put_header(struct tar_header *header) {
  memcpy(header->magic, "ustar", 6);
  memcpy(header->version, "00", 2);
  octal(header->checksum, sizeof header->checksum - 1, tar_checksum(header));
  header->checksum[7] = ' ';
  put(header, sizeof *header);
}

/* The length at the start of the line counts its own digits, too. */
static size_t put_pax(char *out, size_t size, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3, length = rest + 1;
  char digits[24];
  while ((size_t)snprintf(digits, sizeof digits, "%zu", length) + rest != length) length++;
  return length < size ? (size_t)snprintf(out, size, "%zu %s=%s\n", length, key, value) : 0;
}

static void put_extensions(const struct stat *st, const char *name, const char *target, uint64_t size) {
  static char pax[TAR_OUT_PAX];
  size_t length = 0;
  char number[32];
  if (strlen(name) > sizeof((struct tar_header *)0)->name) length += put_pax(pax, sizeof pax, "path", name);
  if (strlen(target) > sizeof((struct tar_header *)0)->linkname)
    length += put_pax(pax + length, sizeof pax - length, "linkpath", target);
  const struct { const char *key; uint64_t value, max; } numbers[] = {
      {"size", size, (uint64_t)MAX_OCTAL_SIZE},
      {"uid", st->st_uid, TAR_OUT_MAX_OCTAL_ID},
      {"gid", st->st_gid, TAR_OUT_MAX_OCTAL_ID},
  };
  for (size_t i = 0; i < 3; i++) {
    if (numbers[i].value <= numbers[i].max) continue;
    snprintf(number, sizeof number, "%llu", (unsigned long long)numbers[i].value);
    length += put_pax(pax + length, sizeof pax - length, numbers[i].key, number);
  }
  if (length == 0) return;
  struct tar_header header = {.name = "pax", .type = 'x'};
  octal(header.mode, sizeof header.mode, 0644);
  octal(header.size, sizeof header.size, length);
  octal(header.mtime, sizeof header.mtime, 0);
  put_header(&header);
  put(pax, length);
  pad(length);
}

static void put_entry(const struct stat *st, char type, const char *target, uint64_t size) {
  char name[PATH_MAX + 1];
  snprintf(name, sizeof name, "%s%s", archive.path, type == '5' ? "/" : "");
  put_extensions(st, name, target, size);
  struct tar_header header = {.type = type};
  memcpy(header.name, name, strnlen(name, sizeof header.name));
  memcpy(header.linkname, target, strnlen(target, sizeof header.linkname));
  octal(header.mode, sizeof header.mode, st->st_mode & 07777);
  octal(header.uid, sizeof header.uid, st->st_uid & TAR_OUT_MAX_OCTAL_ID);
  octal(header.gid, sizeof header.gid, st->st_gid & TAR_OUT_MAX_OCTAL_ID);
  octal(header.size, sizeof header.size, size & (uint64_t)MAX_OCTAL_SIZE);
  int64_t mtime = st->st_mtim.tv_sec;
  octal(header.mtime, sizeof header.mtime, mtime < 0 ? 0 : (uint64_t)(mtime > MAX_OCTAL_SIZE ? MAX_OCTAL_SIZE : mtime));
  if (type == '3' || type == '4') {
    octal(header.major, sizeof header.major, major(st->st_rdev));
    octal(header.minor, sizeof header.minor, minor(st->st_rdev));
  }
  put_header(&header);
}

/* Sends exactly `size` bytes: a file that shrinks meanwhile is padded with zeros, a file that grows is cut. */
static void put_content(int fd, uint64_t size) {
  static char buffer[TAR_OUT_CHUNK];
  for (uint64_t left = size; left > 0;) {
    size_t want = left < sizeof buffer ? (size_t)left : sizeof buffer;
    ssize_t n = read(fd, buffer, want);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse("read", errno);
    if (n == 0) {
      memset(buffer, 0, want);
      n = (ssize_t)want;
    }
    put(buffer, (size_t)n);
    left -= (uint64_t)n;
  }
  pad(size);
}

static void put_file(int fd, const struct stat *st) {
  const char *linked = hardlinks_find(&archive.links, st);
  if (linked != NULL) {
    put_entry(st, '1', linked, 0);
    return;
  }
  hardlinks_add(&archive.links, st, archive.path);
  put_entry(st, '0', "", (uint64_t)st->st_size);
  put_content(fd, (uint64_t)st->st_size);
}

static void walk(int fd, size_t length);

/* Leaves out entries that have disappeared since they were listed. */
static void put_named(int dir, const char *name, size_t length) {
  struct stat st;
  char target[PATH_MAX];
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
  if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return;
    if (fd < 0 || fstat(fd, &st) < 0) refuse("open", errno);
    if (S_ISREG(st.st_mode)) {
      put_file(fd, &st);
      close(fd);
    } else if (S_ISDIR(st.st_mode)) {
      put_entry(&st, '5', "", 0);
      walk(fd, length);
    } else {
      close(fd);
    }
  } else if (S_ISLNK(st.st_mode)) {
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0) return;
    target[n] = 0;
    put_entry(&st, '2', target, 0);
  } else if (!S_ISSOCK(st.st_mode)) { /* a socket is useless without its listener */
    put_entry(&st, S_ISFIFO(st.st_mode) ? '6' : S_ISCHR(st.st_mode) ? '3' : '4', "", 0);
  }
}

/* Takes over the fd. */
static void walk(int fd, size_t length) {
  AUTO_CLOSE_DIR DIR *dir = io_take_dir(fd);
  if (dir == NULL) refuse("open", errno);
  struct dirent *entry;
  while ((entry = io_next_entry(dir)) != NULL) {
    size_t name_length = strlen(entry->d_name), at = length;
    if (entry->d_type == DT_REG && path_is_temp(entry->d_name)) continue;
    if (at + 2 + name_length >= sizeof archive.path) refuse("open", ENAMETOOLONG);
    if (at > 0) archive.path[at++] = '/';
    memcpy(archive.path + at, entry->d_name, name_length + 1);
    put_named(fd, entry->d_name, at + name_length);
    archive.path[length] = 0;
  }
}

static void job(uint32_t stream, const void *arg) {
  const char *path = arg;
  char dir[FIELDS_PATH_SIZE], name[256];
  struct stat st;
  archive.stream = stream;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) < 0) {
    reply_errno(stream, "open", errno, path);
    return;
  }
  if (!S_ISDIR(st.st_mode) && (!S_ISREG(st.st_mode) || path_split(path, dir, name) != 0)) {
    reply_error(stream, KIND_UNSUPPORTED, "open", "neither a directory nor a regular file");
    return;
  }
  reply_entry(MSG_OPENED, stream, path, &st, NULL);
  if (S_ISDIR(st.st_mode)) {
    walk(fd, 0);
  } else {
    strcpy(archive.path, name);
    put_file(fd, &st);
  }
  static const char end[2 * TAR_BLOCK];
  put(end, sizeof end);
  flush();
  link_send(MSG_END, stream, NULL, 0);
}

void request_tar_out(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint32_t window = INITIAL_WINDOW;
  const struct fields_want want[] = {FIELDS_PATH(TAR_OUT_path, path), FIELDS_U32(TAR_OUT_window, &window)};
  struct stream *stream = fields_read(req, want, 2) ? worker_start(req->stream, job, path, false) : NULL;
  if (stream != NULL) stream_narrow(stream, window < WORKER_MAX_PAYLOAD ? WORKER_MAX_PAYLOAD : window);
}
