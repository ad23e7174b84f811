/* paths: opens files by name below the directories that were opened at boot; symlinks are never followed. */
#pragma once

#include "warden.h"

/* A directory below `at`; -1 with errno. A symlink anywhere gives ELOOP, a path that leaves `at` gives EXDEV. */
int path_open_dir(int at, const char *name);
/* The same for any file, with open flags. */
int path_open(int at, const char *name, int flags);
/* A layer's directory, opened; -1 with fail set. */
int path_layer(const char *layer, struct fail *fail);
/* "<tree>.work" */
void path_work_name(char out[MAX_NAME + 6], const char *tree);
/* A unique name .tmp-<pid>-<n>, for things in the making. */
void path_temp_name(char out[48]);
bool path_is_temp(const char *name);
