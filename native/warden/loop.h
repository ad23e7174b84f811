/* loop: reads requests and sends answers. Short requests are answered inline, each other request by a forked worker, so
 * that none waits for another. Answers come in any order. */
#pragma once

/* Returns when the server closes the socket or sends a malformed frame. */
void loop_run(int server_fd);
