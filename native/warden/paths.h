/* paths: directories below the ones opened at boot, by name only; symlinks are never followed. */
#ifndef ISLET_WARDEN_PATHS_H
#define ISLET_WARDEN_PATHS_H

#include "warden.h"

/* A directory below `at`; -1 with errno. A symlink anywhere is ELOOP, a way out EXDEV. */
int path_open_dir(int at, const char *name);
/* The same for any one file, with open flags. */
int path_open(int at, const char *name, int flags);
/* A layer's directory, opened; -1 with fail set. */
int path_layer(const char *layer, struct fail *fail);
/* "<tree>.work" */
void path_work_name(char out[MAX_NAME + 6], const char *tree);
/* A name of the form .tmp-<pid>-<n> that nobody else uses, for things in the making. */
void path_temp_name(char out[48]);
bool path_is_temp(const char *name);

#endif
