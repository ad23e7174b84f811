/*
 * Fuzzes the handling of every byte from the server: frames, the dispatch table, fields, streams and their windows, and a
 * process's stdin. Requests are replaced by stubs that read fields of every kind and open a stream; nothing outside of the
 * fuzzer is touched.
 */
#include "../dispatch.c"
#include "../link/errors.c"
#include "../link/fields.c"
#include "../link/reply.c"
#include "../link/ring.c"
#include "../link/stream.c"

#include <stdlib.h>

static uint8_t out[WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD];
static bool broken, welcomed;

bool link_room(void) { return !broken; }
bool link_welcomed(void) { return welcomed; }
void link_welcome(void) { welcomed = true; }
void link_break(void) { broken = true; }
void link_hang_up(uint32_t delay_ms) { broken = delay_ms != UINT32_MAX; }
uint8_t *link_reserve(size_t length) {
  if (length > WIRE_MAX_PAYLOAD) abort();
  return out;
}
void link_commit(uint8_t type, uint32_t stream, size_t length) {
  (void)stream;
  if (length > WIRE_MAX_PAYLOAD || senders[type] == SERVER || senders[type] == UNKNOWN) abort();
}
void link_send(uint8_t type, uint32_t stream, const void *payload, size_t length) {
  if (length > 0) memcpy(link_reserve(length), payload, length);
  link_commit(type, stream, length);
}

/* A stream that keeps what it gets in a ring and consumes it by halves. */
struct echo {
  struct stream stream;
  struct ring ring;
};

static void echo_data(struct stream *stream, const uint8_t *bytes, size_t length) {
  struct echo *echo = (struct echo *)stream;
  uint64_t before = echo->ring.end;
  if (!ring_put(&echo->ring, bytes, length, INITIAL_WINDOW)) abort(); /* the window bounds it */
  const uint8_t *piece;
  if (length > 0 && (ring_piece(&echo->ring, before, &piece) == 0 || *piece != bytes[0])) abort();
  size_t half = (size_t)(echo->ring.end - echo->ring.start) / 2;
  ring_drop(&echo->ring, echo->ring.start + half);
  stream_consume(stream, half);
}

static void echo_end(struct stream *stream) {
  struct echo *echo = (struct echo *)stream;
  stream_consume(stream, (size_t)(echo->ring.end - echo->ring.start));
  ring_drop(&echo->ring, echo->ring.end);
}

static void echo_window(struct stream *stream) {
  stream->sent += stream_may_send(stream);
  if (stream->sent > stream->send_limit) abort();
}

static void echo_process(struct stream *stream, const struct wire_frame *frame) {
  uint64_t offset = 0;
  const struct fields_want want[] = {FIELDS_U64(ACK_offset, &offset)};
  if (frame->type == MSG_ACK) fields_read(frame, want, 1);
  (void)stream;
}

static void echo_cancel(struct stream *stream) {
  ring_free(&((struct echo *)stream)->ring);
  free(stream);
}

static const struct stream_ops echo_ops = {echo_data, echo_end, echo_window, echo_process, echo_cancel};

static void serve(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "", text[16] = "", nested[8] = "";
  uint32_t number = 0, inner = 0;
  uint64_t large = 0;
  struct wire_field record = {0}, each;
  const struct fields_want want[] = {FIELDS_PATH(1, path), FIELDS_U32(2, &number), FIELDS_STR(3, text), FIELDS_U64(4, &large),
                                     FIELDS_ANY(5, &record)};
  const struct fields_want parts[] = {FIELDS_U32(1, &inner), FIELDS_STR(2, nested)};
  if (!fields_read(req, want, 5)) return;
  if (path[0] != '/' || strlen(path) > MAX_PATH || strlen(text) > 15) abort();
  if (record.value != NULL) fields_read_record(&record, parts, 2);
  struct wire_cursor cursor = fields_begin(req);
  size_t seen = 0;
  while (fields_each(&cursor, 6, &each)) seen += each.length;
  if (seen > req->length) abort();
  struct echo *echo = calloc(1, sizeof *echo);
  if (echo == NULL) return;
  if (!stream_open(&echo->stream, req->stream, &echo_ops)) free(echo);
}

#define STAND_IN(name) \
  void request_##name(const struct wire_frame *req) { serve(req); }
STAND_IN(setup) STAND_IN(kill_all) STAND_IN(ports) STAND_IN(spawn) STAND_IN(attach) STAND_IN(signal) STAND_IN(resize)
STAND_IN(processes) STAND_IN(stat) STAND_IN(mkdir) STAND_IN(chmod) STAND_IN(chown) STAND_IN(symlink) STAND_IN(realpath)
STAND_IN(move) STAND_IN(read) STAND_IN(write) STAND_IN(list) STAND_IN(copy) STAND_IN(remove) STAND_IN(tar_out)
STAND_IN(tar_in) STAND_IN(watch) STAND_IN(dial) STAND_IN(expose)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  broken = false;
  welcomed = size > 0 && data[0] & 1;
  size_t at = size > 0 ? 1 : 0;
  while (!broken) {
    struct wire_frame frame;
    long n = wire_decode(data + at, size - at, &frame);
    if (n <= 0) break;
    dispatch_frame(&frame);
    at += (size_t)n;
  }
  stream_cancel_all();
  if (count != 0) abort();
  return 0;
}
