/* etc: writes hosts, hostname and similar files of /etc before the sandbox can see its root. */
#pragma once

#include "request.h"

/* False: the guest must write them, or report why it cannot. Call it with the credentials of the sandbox's root. */
bool etc_write(int root, const struct bind *bind);
