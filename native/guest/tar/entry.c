#include "tar/entry.h"

#include <stdlib.h>
#include <string.h>

#include "link/worker.h"
#include "tar/tar.h"

enum { TAR_ENTRY_MAX_EXTENSION = 64 * 1024 }; /* names are at most PATH_MAX, other pax keys are ignored */

/* The values of the extensions before a header. */
struct extension {
  char name[PATH_MAX], target[PATH_MAX];
  bool has_name, has_target, has_size, has_uid, has_gid, has_mtime;
  uint64_t size, uid, gid, mtime;
};

static const char *read_extension(const struct tar_header *header, uint64_t size, struct extension *extension);
static const char *read_pax(char *text, size_t length, struct extension *extension);
static bool is_zero(const struct tar_header *header);
static const char *fill(struct tar_entry *entry, const struct tar_header *header, const struct extension *extension, uint64_t size);

bool tar_entry_next(struct tar_entry *entry, const char **bad) {
  static struct extension extension;
  memset(&extension, 0, sizeof extension);
  for (;;) {
    struct tar_header header;
    uint64_t size, checksum;
    *bad = NULL;
    size_t n = worker_read(&header, sizeof header);
    if (n == 0) return false; /* no closing zeros; tar accepts that too */
    if (n < sizeof header) {
      *bad = "the archive is cut off";
      return false;
    }
    if (is_zero(&header)) {
      tar_entry_skip(UINT64_MAX);
      return false;
    }
    if (!tar_number(header.checksum, sizeof header.checksum, &checksum) || checksum != tar_checksum(&header) ||
        !tar_number(header.size, sizeof header.size, &size)) {
      *bad = "not a tar archive (it must be uncompressed)";
      return false;
    }
    if (header.type == 'g') {
      tar_entry_skip((size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);
    } else if (header.type == 'x' || header.type == 'L' || header.type == 'K') {
      *bad = read_extension(&header, size, &extension);
    } else {
      *bad = fill(entry, &header, &extension, size);
      return *bad == NULL;
    }
    if (*bad != NULL) return false;
  }
}

void tar_entry_skip(uint64_t bytes) {
  static char scratch[16 * 1024];
  while (bytes > 0) {
    size_t want = bytes < sizeof scratch ? (size_t)bytes : sizeof scratch;
    if (worker_read(scratch, want) < want) return;
    bytes -= want;
  }
}

static bool is_zero(const struct tar_header *header) {
  const char *bytes = (const char *)header;
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, sizeof *header - 1) == 0;
}

static const char *read_extension(const struct tar_header *header, uint64_t size, struct extension *extension) {
  static char text[TAR_ENTRY_MAX_EXTENSION + TAR_BLOCK];
  if (size > TAR_ENTRY_MAX_EXTENSION) return "an extended header is too large";
  size_t padded = (size_t)(size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
  if (worker_read(text, padded) < padded) return "the archive is cut off";
  text[size] = 0;
  if (header->type == 'x') return read_pax(text, (size_t)size, extension);
  char *out = header->type == 'L' ? extension->name : extension->target;
  if (strlen(text) >= PATH_MAX) return "a name is too long";
  strcpy(out, text);
  if (header->type == 'L') extension->has_name = true;
  else extension->has_target = true;
  return NULL;
}

static const char *take_pax(const char *key, const char *value, size_t length, struct extension *extension) {
  struct { const char *key; uint64_t *out; bool *has; } numbers[] = {
      {"size", &extension->size, &extension->has_size},
      {"uid", &extension->uid, &extension->has_uid},
      {"gid", &extension->gid, &extension->has_gid},
      {"mtime", &extension->mtime, &extension->has_mtime},
  };
  bool path = strcmp(key, "path") == 0;
  if (path || strcmp(key, "linkpath") == 0) {
    if (length >= PATH_MAX || memchr(value, 0, length) != NULL) return "a name is too long or holds a NUL";
    memcpy(path ? extension->name : extension->target, value, length);
    (path ? extension->name : extension->target)[length] = 0;
    *(path ? &extension->has_name : &extension->has_target) = true;
    return NULL;
  }
  if (strncmp(key, "GNU.sparse.", 11) == 0) return "sparse entries are not supported";
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (strcmp(key, numbers[i].key) != 0) continue;
    *numbers[i].out = value[0] == '-' ? 0 : strtoull(value, NULL, 10); /* fractions of seconds are dropped */
    *numbers[i].has = true;
  }
  return NULL;
}

/* Lines "LENGTH KEY=VALUE\n". */
static const char *read_pax(char *text, size_t length, struct extension *extension) {
  static const char *const malformed = "an extended header is malformed";
  while (length > 0) {
    char *after;
    unsigned long line = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &after, 10) : 0;
    if (line == 0 || line > length || *after != ' ' || text[line - 1] != '\n') return malformed;
    char *key = after + 1, *end = text + line - 1;
    char *equals = key < end ? memchr(key, '=', (size_t)(end - key)) : NULL;
    if (equals == NULL) return malformed;
    *equals = *end = 0;
    const char *bad = take_pax(key, equals + 1, (size_t)(end - equals - 1), extension);
    if (bad != NULL) return bad;
    text += line;
    length -= line;
  }
  return NULL;
}

static const char *fill(struct tar_entry *entry, const struct tar_header *header, const struct extension *extension, uint64_t size) {
  uint64_t mode, uid, gid, mtime, major = 0, minor = 0;
  *entry = (struct tar_entry){.type = header->type};
  if (!tar_number(header->mode, sizeof header->mode, &mode) || !tar_number(header->uid, sizeof header->uid, &uid) ||
      !tar_number(header->gid, sizeof header->gid, &gid) || !tar_number(header->mtime, sizeof header->mtime, &mtime)) {
    return "a header is malformed";
  }
  if (header->type == '3' || header->type == '4') {
    if (!tar_number(header->major, sizeof header->major, &major) || !tar_number(header->minor, sizeof header->minor, &minor)) {
      return "a header is malformed";
    }
  }
  if (extension->has_name) {
    strcpy(entry->name, extension->name);
  } else {
    size_t length = 0;
    if (memcmp(header->magic, "ustar", 6) == 0 && header->prefix[0] != 0) {
      length = strnlen(header->prefix, sizeof header->prefix);
      memcpy(entry->name, header->prefix, length);
      entry->name[length++] = '/';
    }
    memcpy(entry->name + length, header->name, strnlen(header->name, sizeof header->name));
  }
  if (extension->has_target) strcpy(entry->target, extension->target);
  else memcpy(entry->target, header->linkname, strnlen(header->linkname, sizeof header->linkname));
  /* Before POSIX, a directory was a file whose name ends in a slash. */
  size_t length = strlen(entry->name);
  if ((entry->type == 0 || entry->type == '0') && length > 0 && entry->name[length - 1] == '/') entry->type = '5';
  entry->mode = (mode_t)(mode & 07777);
  entry->uid = (uid_t)(extension->has_uid ? extension->uid : uid);
  entry->gid = (gid_t)(extension->has_gid ? extension->gid : gid);
  entry->mtime = extension->has_mtime ? extension->mtime : mtime;
  entry->size = extension->has_size ? extension->size : size;
  /* Only files have content, whatever the size field of the others says. */
  if (entry->type >= '1' && entry->type <= '6') entry->size = 0;
  entry->major = (unsigned)major;
  entry->minor = (unsigned)minor;
  return NULL;
}
