/* path: the parts of paths and what is made along them. */
#ifndef ISLET_PATH_H
#define ISLET_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/fields.h"
#include "user.h"

enum { PATH_TEMP_SIZE = 32 };

void path_strip_slashes(char *path);

/* Follows the symlink at the end of the path, again and again; what it leads to need not exist. 0 or an errno. */
int path_follow(const char *path, char out[FIELDS_PATH_SIZE]);
/* Splits into the directory and the last name, trailing slashes aside. 0, or EISDIR when there is no last name. */
int path_split(const char *path, char dir[FIELDS_PATH_SIZE], char name[256]);
/* What an errno of making something at the path is about: the directory that should hold it if that is missing, else the path. */
void path_blamed(int err, const char *path, char out[FIELDS_PATH_SIZE]);
/* Makes the missing directories of the path, itself included, each with mode 0755 and this owner (NULL: the guest's). */
int path_make(const char *path, const struct user_ids *owner);
/* A name that collides with nothing: random, hidden. */
void path_temp(char name[PATH_TEMP_SIZE]);
/* Whether a name is one of those: what is half written is nobody's business. */
bool path_is_temp(const char *name);
/* Reads the owner of a request. True with *set false when it is empty; false: ERROR has been sent. */
bool path_owner(uint32_t stream, const char *owner, struct user_ids *ids, bool *set);
/* Only root's failure to give a file away is a failure: others never can. */
bool path_chown_matters(void);

#endif
