/* errors: errnos as error kinds and names of the protocol. */
#pragma once

/* KIND_... of message.def for an errno; KIND_IO for an errno without a kind of its own. */
int error_kind(int err);
/* "ENOENT"; never NULL. */
const char *error_name(int err);
