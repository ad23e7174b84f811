/* remove: removes trees of any depth and size, with two open directories and no recursion. */
#pragma once

/* Removes everything in dir, not dir itself; -1 with errno. */
int remove_contents(int dir);
/* Removes parent/name and everything below it; succeeds if it does not exist. */
int remove_tree(int parent, const char *name);
