/*
 * layer: <data>/pool/layers/<name>/, a subvolume on btrfs, else a plain directory.
 *
 * A layer that is being made or deleted is named .tmp-<pid>-<n>; one rename publishes it, or takes it away. A read-only
 * snapshot is complete from the start and gets its name at once. So a kill at any time leaves only complete layers and
 * .tmp-*, which boot removes.
 */
#pragma once

#include "request.h"

/* Boot: makes the directory, chooses the clone method, removes .tmp-* that an earlier warden left. */
int layer_open(int pool_fd, const char *method, struct fail *fail);

const char *layer_method_name(enum clone_method method);
int layer_create(const char *name, uint64_t limit_bytes, struct fail *fail);
int layer_clone(const struct request *request, struct wire_out *ok, struct fail *fail);
int layer_delete(const char *name, struct fail *fail);
int layer_limit(const char *name, uint64_t limit_bytes, struct fail *fail);
int layer_usage(const char *name, struct wire_out *ok, struct fail *fail);
int layer_list(struct wire_out *ok, struct fail *fail);
int layer_flatten(const struct request *request, struct fail *fail);
int layer_sync(struct fail *fail);

/* Makes an empty layer under a temporary name; returns its fd. */
int layer_make_temp(char temp[48], struct fail *fail);
/* Renames it to its final name, or removes it. */
int layer_publish(const char *temp, const char *name, struct fail *fail);
void layer_discard(const char *temp);
