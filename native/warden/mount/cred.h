/* cred: whose rights this process has on files, and with which capabilities. */
#pragma once

#include "warden.h"

/* fsuid and fsgid for the rest of this process, with all its capabilities raised again. */
int cred_as(uint32_t id, struct fail *fail);
/* The same with no capability but this one. */
int cred_with_only(uint32_t id, int capability, struct fail *fail);
/* Raises all permitted capabilities; -1 with errno. */
int cred_raise_all(void);
