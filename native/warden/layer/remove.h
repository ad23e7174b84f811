/* remove: removes trees of any depth and size, with two open directories and no recursion. */
#ifndef ISLET_WARDEN_REMOVE_H
#define ISLET_WARDEN_REMOVE_H

/* Removes everything in dir, not dir itself; -1 with errno. */
int remove_contents(int dir);
/* Removes parent/name and everything below it; succeeds if it does not exist. */
int remove_tree(int parent, const char *name);

#endif
