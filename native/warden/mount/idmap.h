/* idmap: a clone of a directory's mount with shifted user and group ids. */
#pragma once

#include "warden.h"

/* A detached mount of dir_fd that maps id 0 on disk to the first id of user_ns; -1 with fail set. */
int idmap_clone(int dir_fd, int user_ns, struct fail *fail);
