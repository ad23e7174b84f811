/* sink: reads pipes to their end and throws the bytes away. */
#ifndef ISLET_SINK_H
#define ISLET_SINK_H

/* Takes over the non-blocking fd. */
void sink_add(int fd);

#endif
