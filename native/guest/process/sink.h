/* sink: reads pipes to their end and throws the bytes away. */
#pragma once

/* Takes over the non-blocking fd. */
void sink_add(int fd);
