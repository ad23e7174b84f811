/*
 * stream: the requests in progress on this connection, by number, and their flow-control windows.
 *
 * A stream is a member of the struct that serves it (a process, a read, a worker ...), which provides its operations. A
 * request that is answered at once has no stream.
 */
#pragma once

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
  /* RESET or a lost connection: undo and free. The stream is closed already; nothing may be sent on it. */
  void (*cancel)(struct stream *stream);
};

struct stream {
  uint32_t number;
  bool open;
  bool peer_ended;
  const struct stream_ops *ops;
  uint64_t sent, send_limit;         /* bytes of DATA or ENTRIES from us */
  uint64_t received, receive_limit;  /* from the server */
  uint64_t consumed;                 /* received bytes that are processed */
  struct stream *next;
};

/* False: too many streams, and ERROR LIMIT has been sent. */
bool stream_open(struct stream *stream, uint32_t number, const struct stream_ops *ops);
/* Takes it out of the table; closing twice is fine. */
void stream_close(struct stream *stream);
bool stream_in_use(uint32_t number);
void stream_cancel_all(void);

/* Handles DATA, END, WINDOW, RESET and the process messages. */
void stream_frame(const struct wire_frame *frame);

/* Lowers the initial send window; a larger value than INITIAL_WINDOW changes nothing. */
void stream_narrow(struct stream *stream, uint32_t window);
/* How many bytes of DATA may go out in one frame now. */
size_t stream_may_send(const struct stream *stream);
/* `length` received bytes are processed: sends WINDOW when it is due. */
void stream_consume(struct stream *stream, size_t length);
