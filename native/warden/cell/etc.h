/* etc: the files of /etc by which a sandbox knows who and where it is, written before anybody can see its root. */
#ifndef ISLET_WARDEN_ETC_H
#define ISLET_WARDEN_ETC_H

#include "request.h"

/* Whether all of them are there; else the guest must write them, or say why it cannot. With the credentials of the sandbox's root. */
bool etc_write(int root, const struct bind *bind);

#endif
