#include "process/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "link/link.h"
#include "message.h"
#include "process/process.h"
#include "process/sink.h"

enum {
  OUTPUT_READ = 64 * 1024,    /* read from a pipe per turn; the size of a pipe */
  OUTPUT_GUESS = 4096,        /* read if the kernel does not tell how many bytes there are */
  OUTPUT_PREFIX = 9,          /* of an OUTPUT frame: channel and offset */
  OUTPUT_MAX_SEGMENTS = 1024, /* most switches between the channels that are kept */
  OUTPUT_RETRY_US = 100 * 1000,
};

static void ready(struct loop_source *source, uint32_t events);
static void update_interest(struct output *output);

void output_init(struct output *output) {
  for (uint8_t i = 0; i < 2; i++) output->channel[i] = (struct output_channel){.source.fd = -1, .number = i + 1};
}

bool output_open(struct output *output, uint8_t channel, int fd) {
  struct loop_source *source = &output->channel[channel - 1].source;
  *source = (struct loop_source){.fd = fd, .ready = ready};
  return loop_wait(source, EPOLLIN);
}

static struct output *owner(struct loop_source *source) {
  struct output_channel *channel = container_of(source, struct output_channel, source);
  return container_of(channel - (channel->number - 1), struct output, channel[0]);
}

static bool has_room(const struct output *output) {
  return output->ring.end - output->ring.start < OUTPUT_BUFFER && output->segment_count < OUTPUT_MAX_SEGMENTS;
}

/* Makes sure that the next bytes can be assigned to a channel. */
static bool prepare_segment(struct output *output) {
  if (output->segment_count < output->segment_cap) return true;
  unsigned cap = output->segment_cap == 0 ? 4 : output->segment_cap * 2;
  struct output_segment *segments = realloc(output->segments, cap * sizeof *segments);
  if (segments == NULL) return false;
  output->segments = segments;
  output->segment_cap = cap;
  return true;
}

static void mark_segment(struct output *output, uint8_t channel) {
  struct output_segment *last = output->segment_count > 0 ? &output->segments[output->segment_count - 1] : NULL;
  if (last == NULL || last->channel != channel) last = &output->segments[output->segment_count++];
  *last = (struct output_segment){output->ring.end, channel};
}

static void drop_segments(struct output *output) {
  unsigned gone = 0;
  while (gone < output->segment_count && output->segments[gone].end <= output->ring.start) gone++;
  output->segment_count -= gone;
  if (output->segment_count > 0) {
    if (gone > 0) memmove(output->segments, output->segments + gone, output->segment_count * sizeof *output->segments);
    return;
  }
  free(output->segments);
  output->segments = NULL;
  output->segment_cap = 0;
}

static void on_retry(struct loop_timer *timer) {
  update_interest(container_of(timer, struct output, retry));
}

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  struct output *output = owner(source);
  struct output_channel *channel = container_of(source, struct output_channel, source);
  if (!has_room(output)) {
    update_interest(output);
    return;
  }
  int waiting = 0;
  if (ioctl(source->fd, FIONREAD, &waiting) < 0 || waiting <= 0) waiting = OUTPUT_GUESS;
  struct iovec space[2];
  size_t want = waiting < OUTPUT_READ ? (size_t)waiting : OUTPUT_READ;
  int pieces = prepare_segment(output) ? ring_space(&output->ring, space, want, OUTPUT_BUFFER) : 0;
  if (pieces == 0) {
    /* No memory: stop reading for a while. The program blocks in write meanwhile. */
    for (int i = 0; i < 2; i++) loop_wait(&output->channel[i].source, 0);
    loop_timer_set(&output->retry, OUTPUT_RETRY_US, on_retry);
    return;
  }
  ssize_t n = readv(source->fd, space, pieces);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (output->ring.start == output->ring.end) ring_free(&output->ring);
    return;
  }
  if (n > 0) {
    output->ring.end += (uint64_t)n;
    mark_segment(output, channel->number);
    channel->due = channel->due > (size_t)n ? channel->due - (size_t)n : 0;
    if (!has_room(output)) update_interest(output);
  } else { /* 0 from a pipe, EIO from a terminal: every writer has closed it */
    if (output->ring.start == output->ring.end) ring_free(&output->ring);
    channel->due = 0;
    loop_close(source);
  }
  process_settle(container_of(output, struct process, output));
}

static void update_interest(struct output *output) {
  if (output->retry.armed) return;
  uint32_t events = has_room(output) ? EPOLLIN : 0;
  for (int i = 0; i < 2; i++) {
    if (output->channel[i].source.fd >= 0) loop_wait(&output->channel[i].source, events);
  }
}

bool output_send(struct output *output, uint32_t stream) {
  if (output->sent == output->ring.end) return false;
  const struct output_segment *segment = output->segments;
  while (segment->end <= output->sent) segment++;
  const uint8_t *bytes;
  size_t length = ring_piece(&output->ring, output->sent, &bytes);
  if (length > segment->end - output->sent) length = (size_t)(segment->end - output->sent);
  if (length > MAX_DATA) length = MAX_DATA;
  uint8_t *payload = link_reserve(OUTPUT_PREFIX + length);
  payload[0] = segment->channel;
  for (int i = 0; i < 8; i++) payload[1 + i] = (uint8_t)(output->sent >> (8 * i));
  memcpy(payload + OUTPUT_PREFIX, bytes, length);
  link_commit(MSG_OUTPUT, stream, OUTPUT_PREFIX + length);
  output->sent += length;
  return output->sent < output->ring.end;
}

void output_ack(struct output *output, uint64_t offset) {
  if (offset <= output->ring.start) return;
  ring_drop(&output->ring, offset);
  drop_segments(output);
  update_interest(output);
}

void output_rewind(struct output *output, uint64_t from) {
  output->sent = from;
  output_ack(output, from);
}

void output_note_exit(struct output *output) {
  for (int i = 0; i < 2; i++) {
    struct output_channel *channel = &output->channel[i];
    int waiting = 0;
    if (channel->source.fd < 0 || ioctl(channel->source.fd, FIONREAD, &waiting) < 0) continue;
    channel->due = waiting > 0 ? (size_t)waiting : 0;
    /* Usually every writer is gone and the pipe is empty: see its end now instead of one turn later. */
    if (waiting == 0) ready(&channel->source, EPOLLIN);
  }
}

bool output_ended(const struct output *output) {
  return output->channel[0].source.fd < 0 && output->channel[1].source.fd < 0;
}

bool output_caught_up(const struct output *output) {
  return output->channel[0].due == 0 && output->channel[1].due == 0;
}

void output_abandon(struct output *output) {
  for (int i = 0; i < 2; i++) {
    struct loop_source *source = &output->channel[i].source;
    if (source->fd < 0) continue;
    loop_wait(source, 0);
    sink_add(source->fd);
    source->fd = -1;
  }
}

void output_free(struct output *output) {
  for (int i = 0; i < 2; i++) loop_close(&output->channel[i].source);
  loop_timer_clear(&output->retry);
  ring_free(&output->ring);
  free(output->segments);
  output->segments = NULL;
}
