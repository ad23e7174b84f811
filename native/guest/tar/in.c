/*
 * tar_in: serves TAR_IN, in a worker: unpacks an archive below a path.
 *
 * Names are resolved from the destination one directory at a time without following symlinks, so no entry can leave the
 * destination. The first entry that tries to ends the unpacking with an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file/path.h"
#include "file/tree.h"
#include "io.h"
#include "link/fields.h"
#include "link/reply.h"
#include "link/worker.h"
#include "requests.h"
#include "tar/entry.h"
#include "tar/tar.h"

enum {
  TAR_IN_CHUNK = 64 * 1024,
  TAR_IN_MAX_DIRECTORIES = 1000000, /* whose mode and times are set at the end; for more they are set at once */
};

struct unpack {
  char path[FIELDS_PATH_SIZE];
  char owner[FIELDS_OWNER_SIZE];
};

/* A directory gets its mode and times last: writing its content changes the times, and the mode may forbid writing. */
struct directory {
  struct directory *next;
  struct stat st;
  char name[];
};

static struct {
  uint32_t stream;
  const char *path; /* of the root, as asked */
  int root;
  bool owned;
  struct user_ids owner;
  uint64_t count;
  struct directory *directories;
  size_t directory_count;
  struct tar_entry entry;
} archive;

static void refuse(int kind, int err, const char *stage, const char *why) __attribute__((noreturn));
static void refuse(int kind, int err, const char *stage, const char *why) {
  char message[1024];
  snprintf(message, sizeof message, "%.800s: %s", archive.entry.name, why);
  reply_failure(archive.stream, kind, err, stage, message);
  _exit(0);
}

static void fail(const char *stage, int err) __attribute__((noreturn));
static void fail(const char *stage, int err) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", archive.path, archive.entry.name);
  reply_errno_at(archive.stream, stage, err, path);
  _exit(0);
}

/* Opens the next directory of a path; makes it if it is missing and `make` is set. */
static int step(int dir, const char *name, bool make) {
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) return fd;
  struct stat st;
  if (errno == ENOENT && make) {
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST) fail("mkdir", errno);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) fail("open", errno);
    if (archive.owned && fchown(fd, archive.owner.uid, archive.owner.gid) < 0 && path_chown_matters()) fail("chown", errno);
    return fd;
  }
  int err = errno;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
    refuse(KIND_BAD_REQUEST, 0, "name", "leads through a symlink");
  fail("open", err);
}

/* Opens the parent directory of `name` and copies the last part to `last`; "" for the destination itself. */
static int open_parent(const char *name, char last[NAME_MAX + 1], bool make) {
  if (name[0] == '/') refuse(KIND_BAD_REQUEST, 0, "name", "is absolute");
  int fd = openat(archive.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("open", errno);
  last[0] = 0;
  while (*name != 0) {
    size_t length = strcspn(name, "/");
    if (length > NAME_MAX) fail("name", ENAMETOOLONG);
    if (length == 2 && name[0] == '.' && name[1] == '.') refuse(KIND_BAD_REQUEST, 0, "name", "leads upwards");
    if (length > 0 && !(length == 1 && name[0] == '.')) {
      if (last[0] != 0) {
        int below = step(fd, last, make);
        close(fd);
        fd = below;
      }
      memcpy(last, name, length);
      last[length] = 0;
    }
    name += length;
    while (*name == '/') name++;
  }
  return fd;
}

static struct stat wanted(void) {
  const struct tar_entry *entry = &archive.entry;
  struct stat st = {.st_mode = entry->mode & 07777, .st_uid = entry->uid, .st_gid = entry->gid};
  if (archive.owned) {
    st.st_uid = archive.owner.uid;
    st.st_gid = archive.owner.gid;
  }
  st.st_mtim.tv_sec = st.st_atim.tv_sec = (time_t)entry->mtime;
  return st;
}

static void restore(int fd, int dir, const char *name, const struct stat *st) {
  int err = tree_restore(fd, dir, name, st);
  if (err != 0) fail("restore", err);
}

/* Removes what is at the name, which must not be a directory. */
static void clear(int dir, const char *name) {
  struct stat st;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
  if (S_ISDIR(st.st_mode)) fail("open", EISDIR);
  if (unlinkat(dir, name, 0) < 0) fail("unlink", errno);
}

/*
 * Opens a file without a name, which gets its name when it is complete: no half-written file is visible if the worker dies.
 * On a filesystem without O_TMPFILE the file has its name at once, and *named is set.
 */
static int open_file(int dir, const char *name, bool *named) {
  int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  *named = fd < 0;
  if (fd >= 0) return fd;
  clear(dir, name);
  fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) fail("open", errno);
  return fd;
}

static void give_name(int fd, int dir, const char *name) {
  char path[32];
  clear(dir, name);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0) fail("link", errno);
}

static void make_file(int dir, const char *name) {
  static char chunk[TAR_IN_CHUNK];
  bool named;
  int fd = open_file(dir, name, &named);
  for (uint64_t left = archive.entry.size; left > 0;) {
    size_t want = left < sizeof chunk ? (size_t)left : sizeof chunk;
    if (worker_read(chunk, want) < want) {
      if (named) unlinkat(dir, name, 0);
      refuse(KIND_BAD_REQUEST, 0, "archive", "the archive is cut off");
    }
    if (!io_write_all(fd, chunk, want)) {
      int err = errno;
      if (named) unlinkat(dir, name, 0);
      fail("write", err);
    }
    left -= want;
  }
  tar_entry_skip(archive.entry.size % TAR_BLOCK == 0 ? 0 : TAR_BLOCK - archive.entry.size % TAR_BLOCK);
  struct stat st = wanted();
  restore(fd, -1, NULL, &st);
  if (!named) give_name(fd, dir, name);
  close(fd);
}

static void make_directory(int dir, const char *name) {
  struct stat st, old;
  bool exists = fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !S_ISDIR(old.st_mode)) clear(dir, name);
  if (!(exists && S_ISDIR(old.st_mode)) && mkdirat(dir, name, 0700) < 0) fail("mkdir", errno);
  st = wanted();
  struct directory *directory = NULL;
  if (archive.directory_count < TAR_IN_MAX_DIRECTORIES) directory = malloc(sizeof *directory + strlen(archive.entry.name) + 1);
  if (directory == NULL) {
    restore(-1, dir, name, &st);
    return;
  }
  directory->st = st;
  strcpy(directory->name, archive.entry.name);
  directory->next = archive.directories;
  archive.directories = directory;
  archive.directory_count++;
}

static void make_link(int dir, const char *name) {
  char last[NAME_MAX + 1];
  int from = open_parent(archive.entry.target, last, false);
  if (last[0] == 0) refuse(KIND_BAD_REQUEST, 0, "name", "links to nothing");
  clear(dir, name);
  if (linkat(from, last, dir, name, 0) < 0) fail("link", errno);
  close(from);
}

static void make_symlink(int dir, const char *name) {
  clear(dir, name);
  if (symlinkat(archive.entry.target, dir, name) < 0) fail("symlink", errno);
  struct stat st = wanted();
  st.st_mode |= S_IFLNK;
  restore(-1, dir, name, &st);
}

static void make_special(int dir, const char *name, mode_t kind) {
  clear(dir, name);
  if (mknodat(dir, name, kind | 0600, makedev(archive.entry.major, archive.entry.minor)) < 0) {
    if (errno == EPERM && kind != S_IFIFO) return; /* a sandbox may not make devices; skip them */
    fail("mknod", errno);
  }
  struct stat st = wanted();
  restore(-1, dir, name, &st);
}

static void make(void) {
  char name[NAME_MAX + 1];
  int dir = open_parent(archive.entry.name, name, true);
  char type = archive.entry.type;
  bool file = type == '0' || type == 0 || type == '7';
  if (name[0] == 0) { /* the destination itself, which stays unchanged */
    if (type != '5') refuse(KIND_BAD_REQUEST, 0, "name", "has no name");
  } else if (file) make_file(dir, name);
  else if (type == '1') make_link(dir, name);
  else if (type == '2') make_symlink(dir, name);
  else if (type == '3' || type == '4') make_special(dir, name, type == '3' ? S_IFCHR : S_IFBLK);
  else if (type == '5') make_directory(dir, name);
  else if (type == '6') make_special(dir, name, S_IFIFO);
  else refuse(KIND_UNSUPPORTED, 0, "archive", "has an unknown type");
  if (!file) tar_entry_skip((archive.entry.size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);
  archive.count++;
  close(dir);
}

/* Last first: setting the times of a directory comes after everything in it. */
static void finish_directories(void) {
  for (struct directory *d = archive.directories; d != NULL; d = d->next) {
    char name[NAME_MAX + 1];
    snprintf(archive.entry.name, sizeof archive.entry.name, "%s", d->name);
    int parent = open_parent(d->name, name, false);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) restore(fd, -1, NULL, &d->st);
    if (fd >= 0) close(fd);
    close(parent);
  }
}

static void job(uint32_t stream, const void *arg) {
  const struct unpack *unpack = arg;
  archive.stream = stream;
  archive.path = unpack->path;
  if (!path_owner(stream, unpack->owner, &archive.owner, &archive.owned)) return;
  int err = path_make(unpack->path, archive.owned ? &archive.owner : NULL);
  archive.root = err == 0 ? open(unpack->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (archive.root < 0) {
    reply_errno(stream, "open", err != 0 ? err : errno, unpack->path);
    return;
  }
  reply_opened(stream);
  const char *bad;
  while (tar_entry_next(&archive.entry, &bad)) make();
  if (bad != NULL) refuse(KIND_BAD_REQUEST, 0, "archive", bad);
  finish_directories();
  reply_count(stream, archive.count);
}

void request_tar_in(const struct wire_frame *req) {
  struct unpack unpack = {0};
  const struct fields_want want[] = {FIELDS_PATH(TAR_IN_path, unpack.path), FIELDS_STR(TAR_IN_owner, unpack.owner)};
  if (fields_read(req, want, 2)) worker_start(req->stream, job, &unpack, true);
}
