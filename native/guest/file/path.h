/* path: splitting, following and making paths. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/fields.h"
#include "user.h"

enum { PATH_TEMP_SIZE = 32 };

void path_strip_slashes(char *path);

/* Follows symlinks at the end of the path until there is none; the result need not exist. 0 or an errno. */
int path_follow(const char *path, char out[FIELDS_PATH_SIZE]);
/* Splits into the directory and the last name; ignores trailing slashes. 0 or an errno; EISDIR: there is no last name. */
int path_split(const char *path, char dir[FIELDS_PATH_SIZE], char name[256]);
/* The path to report after making something at `path` failed with `err`: its parent directory if that is missing, else the path. */
void path_blamed(int err, const char *path, char out[FIELDS_PATH_SIZE]);
/* Makes the missing directories of the path, the last one included, with mode 0755 and this owner (NULL: the guest). */
int path_make(const char *path, const struct user_ids *owner);
/* A random hidden name for a file in the making. */
void path_temp(char name[PATH_TEMP_SIZE]);
/* Whether a name was made by path_temp: half-written files are hidden from users. */
bool path_is_temp(const char *name);
/* Looks up the owner of a request; *set is false if there is none. False: the lookup failed and ERROR has been sent. */
bool path_owner(uint32_t stream, const char *owner, struct user_ids *ids, bool *set);
/* Whether a failed chown is an error: only root may give files away. */
bool path_chown_matters(void);
