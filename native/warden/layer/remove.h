/* remove: trees of any depth and size, with two open directories and no recursion. */
#ifndef ISLET_WARDEN_REMOVE_H
#define ISLET_WARDEN_REMOVE_H

/* Everything in dir, not dir itself; -1 with errno. */
int remove_contents(int dir);
/* parent/name and everything below it; fine when there is none. */
int remove_tree(int parent, const char *name);

#endif
