/* idmap: a clone of a directory's mount whose ids are shifted. */
#ifndef ISLET_WARDEN_IDMAP_H
#define ISLET_WARDEN_IDMAP_H

#include "warden.h"

/* A detached mount of dir_fd in which the id 0 on disk is the first id of user_ns; -1 with fail set. */
int idmap_clone(int dir_fd, int user_ns, struct fail *fail);

#endif
