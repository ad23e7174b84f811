/* reap: the only caller of waitpid. Every dead child, adopted orphans included, passes through here. */
#pragma once

#include <stdbool.h>

/* Blocks all signals; from now on they arrive through the loop. */
bool reap_init(void);
/* Reaps what is dead now; false when the guest has no children at all. */
bool reap_turn(void);
