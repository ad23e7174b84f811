/* loop: reads requests and sends answers. Short requests are answered inline, each other request by a forked worker, so
 * that none waits for another. Answers come in any order. */
#ifndef ISLET_WARDEN_LOOP_H
#define ISLET_WARDEN_LOOP_H

/* Returns when the server closes the socket or sends a malformed frame. */
void loop_run(int server_fd);

#endif
