#include "file/hardlinks.h"

#include <stdlib.h>
#include <string.h>

enum { HARDLINKS_BUCKETS = 4096, HARDLINKS_MAX = 1000000 };

struct hardlink {
  dev_t dev;
  ino_t ino;
  struct hardlink *next;
  char path[];
};

const char *hardlinks_find(const struct hardlinks *links, const struct stat *st) {
  if (st->st_nlink < 2 || links->buckets == NULL) return NULL;
  struct hardlink *link = links->buckets[st->st_ino % HARDLINKS_BUCKETS];
  while (link != NULL && (link->dev != st->st_dev || link->ino != st->st_ino)) link = link->next;
  return link == NULL ? NULL : link->path;
}

void hardlinks_add(struct hardlinks *links, const struct stat *st, const char *path) {
  if (st->st_nlink < 2 || links->count >= HARDLINKS_MAX) return;
  if (links->buckets == NULL) links->buckets = calloc(HARDLINKS_BUCKETS, sizeof(struct hardlink *));
  struct hardlink *link = links->buckets == NULL ? NULL : malloc(sizeof *link + strlen(path) + 1);
  if (link == NULL) return;
  link->dev = st->st_dev;
  link->ino = st->st_ino;
  strcpy(link->path, path);
  link->next = links->buckets[st->st_ino % HARDLINKS_BUCKETS];
  links->buckets[st->st_ino % HARDLINKS_BUCKETS] = link;
  links->count++;
}

void hardlinks_free(struct hardlinks *links) {
  for (size_t i = 0; links->buckets != NULL && i < HARDLINKS_BUCKETS; i++) {
    while (links->buckets[i] != NULL) {
      struct hardlink *link = links->buckets[i];
      links->buckets[i] = link->next;
      free(link);
    }
  }
  free(links->buckets);
  *links = (struct hardlinks){0};
}
