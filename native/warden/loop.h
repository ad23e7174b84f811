/* loop: frames in, answers out. Short requests are answered at once, the others by a forked worker each, so none
 * waits for another; answers come in any order. */
#ifndef ISLET_WARDEN_LOOP_H
#define ISLET_WARDEN_LOOP_H

/* Returns when the server hangs up or breaks the framing. */
void loop_run(int server_fd);

#endif
