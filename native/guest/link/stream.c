#include "link/stream.h"

#include "link/fields.h"
#include "link/link.h"
#include "link/reply.h"
#include "message.h"

enum { STREAM_BUCKETS = 1024 };

static struct stream *buckets[STREAM_BUCKETS];
static unsigned count;

static struct stream **slot(uint32_t number) {
  struct stream **at = &buckets[number % STREAM_BUCKETS];
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  return at;
}

bool stream_open(struct stream *stream, uint32_t number, const struct stream_ops *ops) {
  if (count >= MAX_STREAMS) {
    reply_error(number, KIND_LIMIT, "request", "too many streams are open");
    return false;
  }
  *stream = (struct stream){
      .number = number,
      .open = true,
      .ops = ops,
      .send_limit = INITIAL_WINDOW,
      .receive_limit = INITIAL_WINDOW,
  };
  struct stream **at = slot(number);
  stream->next = *at;
  *at = stream;
  count++;
  return true;
}

void stream_close(struct stream *stream) {
  if (!stream->open) return;
  stream->open = false;
  *slot(stream->number) = stream->next;
  count--;
}

bool stream_in_use(uint32_t number) {
  return *slot(number) != NULL;
}

static void cancel(struct stream *stream) {
  stream_close(stream);
  stream->ops->cancel(stream);
}

void stream_cancel_all(void) {
  for (int i = 0; i < STREAM_BUCKETS; i++) {
    while (buckets[i] != NULL) cancel(buckets[i]);
  }
}

static void take_data(struct stream *stream, const struct wire_frame *frame) {
  bool allowed = stream->ops->data != NULL && !stream->peer_ended && frame->length <= MAX_DATA &&
                 frame->length <= stream->receive_limit - stream->received;
  if (!allowed) {
    link_break();
    return;
  }
  stream->received += frame->length;
  stream->ops->data(stream, frame->payload, frame->length);
}

static void take_window(struct stream *stream, const struct wire_frame *frame) {
  uint64_t limit = 0;
  const struct fields_want want[] = {FIELDS_U64(WINDOW_limit, &limit)};
  if (stream->ops->window == NULL) return; /* this stream sends nothing under a window */
  if (!fields_read(frame, want, 1)) {
    cancel(stream); /* the ERROR has ended it */
    return;
  }
  if (limit <= stream->send_limit) return;
  stream->send_limit = limit;
  stream->ops->window(stream);
}

void stream_frame(const struct wire_frame *frame) {
  struct stream *stream = *slot(frame->stream);
  if (stream == NULL) return; /* the stream ended while this frame was on its way */
  switch (frame->type) {
    case MSG_DATA: take_data(stream, frame); break;
    case MSG_WINDOW: take_window(stream, frame); break;
    case MSG_RESET: cancel(stream); break;
    case MSG_END:
      if (stream->ops->end == NULL || stream->peer_ended) {
        link_break();
        break;
      }
      stream->peer_ended = true;
      stream->ops->end(stream);
      break;
    default:
      if (stream->ops->process == NULL) link_break();
      else stream->ops->process(stream, frame);
  }
}

void stream_narrow(struct stream *stream, uint32_t window) {
  if (window < INITIAL_WINDOW) stream->send_limit = window;
}

size_t stream_may_send(const struct stream *stream) {
  uint64_t left = stream->send_limit - stream->sent;
  return left < MAX_DATA ? (size_t)left : MAX_DATA;
}

void stream_consume(struct stream *stream, size_t length) {
  stream->consumed += length;
  /* Half a window at a time keeps the sender busy with few WINDOW frames. */
  if (stream->peer_ended || stream->consumed + INITIAL_WINDOW / 2 < stream->receive_limit) return;
  stream->receive_limit = stream->consumed + INITIAL_WINDOW;
  struct wire_out out = WIRE_OUT(16);
  wire_put_u64(&out, WINDOW_limit, stream->receive_limit);
  link_send(MSG_WINDOW, stream->number, out.buf, out.len);
}
