#ifndef WARDEN_STRANGERS_H
#define WARDEN_STRANGERS_H

/* Unmounts, in this mount namespace only, what holds none of the absolute paths in `keep` (NULL at its end). */
void drop_strange_mounts(const char *const *keep);

#endif
