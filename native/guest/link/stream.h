/*
 * stream: the requests in progress on this connection, by their number, and their windows.
 *
 * A stream is a member of what serves it (a process, a read, a worker ...), which gives it its operations. A
 * request that is answered at once never gets one.
 */
#ifndef ISLET_STREAM_H
#define ISLET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct stream;

struct stream_ops {
  /* Bytes of DATA, within the window. NULL: this kind of stream takes no data. */
  void (*data)(struct stream *stream, const uint8_t *bytes, size_t length);
  /* END: no more data. Goes with `data`. */
  void (*end)(struct stream *stream);
  /* The peer raised the window: more may be sent. NULL: nothing is sent under a window. */
  void (*window)(struct stream *stream);
  /* ACK, STDIN, STDIN_END, FORGET. NULL: not a process. */
  void (*process)(struct stream *stream, const struct wire_frame *frame);
  /* RESET or a lost connection: undo and free; the stream is closed already and nothing may be sent on it. */
  void (*cancel)(struct stream *stream);
};

struct stream {
  uint32_t number;
  bool open;
  bool peer_ended;
  const struct stream_ops *ops;
  uint64_t sent, send_limit;         /* bytes of DATA or ENTRIES from us */
  uint64_t received, receive_limit;  /* from the server */
  uint64_t consumed;                 /* of those received, dealt with */
  struct stream *next;
};

/* False: too many streams, and ERROR LIMIT has been sent. */
bool stream_open(struct stream *stream, uint32_t number, const struct stream_ops *ops);
/* Takes it out of the table; closing twice is fine. */
void stream_close(struct stream *stream);
bool stream_in_use(uint32_t number);
void stream_cancel_all(void);

/* DATA, END, WINDOW, RESET and the process messages, for whatever stream they name. */
void stream_frame(const struct wire_frame *frame);

/* What may go out before the first WINDOW, if that is less than INITIAL_WINDOW. */
void stream_narrow(struct stream *stream, uint32_t window);
/* How many bytes of DATA may go out in one frame now. */
size_t stream_may_send(const struct stream *stream);
/* `length` received bytes have been dealt with: sends WINDOW when that is due. */
void stream_consume(struct stream *stream, size_t length);

#endif
