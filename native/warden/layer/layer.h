/*
 * layer: <data>/pool/layers/<name>/, a subvolume on btrfs, else a plain directory.
 *
 * A layer in the making or on its way out has a name .tmp-<pid>-<n>; it becomes a layer, or stops being one, by
 * one rename; a read-only snapshot is whole from its first instant and has its name at once. So a kill at any instant leaves
 * whole layers and .tmp-* only, and boot removes the latter.
 */
#ifndef ISLET_WARDEN_LAYER_H
#define ISLET_WARDEN_LAYER_H

#include "request.h"

/* Boot: makes the directory, finds out how layers are cloned here, removes what an earlier life left half-made. */
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

/* An empty layer under a temporary name; its fd. */
int layer_make_temp(char temp[48], struct fail *fail);
/* Gives it its name, or takes it away. */
int layer_publish(const char *temp, const char *name, struct fail *fail);
void layer_discard(const char *temp);

#endif
