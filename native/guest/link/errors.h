/* errors: what an errno is called on the wire. */
#ifndef ISLET_ERRORS_H
#define ISLET_ERRORS_H

/* KIND_... of message.def for an errno; KIND_IO for one that has no kind of its own. */
int error_kind(int err);
/* "ENOENT"; never NULL. */
const char *error_name(int err);

#endif
