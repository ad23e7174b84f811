#include "process/input.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/link.h"
#include "message.h"
#include "process/process.h"
#include "wire.h"

enum { INPUT_ANNOUNCE = STDIN_BUFFER / 4 }; /* the window is raised in steps of at least this much */

static void pump(struct input *input);

void input_init(struct input *input) {
  input->source.fd = -1;
  input->announced = STDIN_BUFFER;
}

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  pump(container_of(source, struct input, source));
}

void input_open(struct input *input, int fd, bool terminal) {
  input->source = (struct loop_source){.fd = fd, .ready = ready};
  input->terminal = terminal;
}

/* True if everything was written. False: the pipe is full, or the program closed its end and the input is closed. */
static bool write_some(struct input *input, const uint8_t *bytes, size_t length, size_t *written) {
  *written = 0;
  while (*written < length) {
    ssize_t n = write(input->source.fd, bytes + *written, length - *written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) {
      input_close(input);
      return false;
    }
    *written += (size_t)n;
  }
  return true;
}

static void maybe_announce(struct input *input) {
  struct process *process = container_of(input, struct process, input);
  if (!process->stream.open || input->ended) return;
  if (input->ring.start + STDIN_BUFFER >= input->announced + INPUT_ANNOUNCE) {
    input_announce(input, process->stream.number);
  }
}

void input_announce(struct input *input, uint32_t stream) {
  input->announced = input->ring.start + STDIN_BUFFER;
  struct wire_out out = WIRE_OUT(16);
  wire_put_u64(&out, STDIN_WINDOW_limit, input->announced);
  link_send(MSG_STDIN_WINDOW, stream, out.buf, out.len);
}

enum input_result input_take(struct input *input, uint64_t offset, const uint8_t *bytes, size_t length) {
  if (input->ended) return INPUT_TAKEN;
  if (offset > input->ring.end) return INPUT_GAP;
  uint64_t known = input->ring.end - offset;
  if (known >= length) return INPUT_TAKEN;
  bytes += known;
  length -= (size_t)known;
  if (length > input->announced - input->ring.end) return INPUT_PAST_WINDOW;
  if (input->source.fd >= 0 && input->ring.start == input->ring.end) {
    size_t written;
    write_some(input, bytes, length, &written);
    input->ring.end += written;
    input->ring.start = input->ring.end;
    bytes += written;
    length -= written;
  }
  if (input->source.fd < 0) {
    input->ring.end += length;
    input->ring.start = input->ring.end;
  } else if (length > 0) {
    if (!ring_put(&input->ring, bytes, length, STDIN_BUFFER)) return INPUT_NO_MEMORY;
    loop_wait(&input->source, EPOLLOUT);
  }
  maybe_announce(input);
  return INPUT_TAKEN;
}

void input_end(struct input *input) {
  if (input->ended) return;
  input->ended = true;
  if (input->source.fd >= 0) pump(input);
}

static void pump(struct input *input) {
  const uint8_t *bytes;
  size_t length, written;
  bool open = true;
  while (open && (length = ring_piece(&input->ring, input->ring.start, &bytes)) > 0) {
    open = write_some(input, bytes, length, &written);
    if (input->source.fd >= 0) ring_drop(&input->ring, input->ring.start + written);
  }
  if (input->source.fd >= 0 && !open) loop_wait(&input->source, EPOLLOUT);
  if (input->source.fd >= 0 && open) {
    loop_wait(&input->source, 0);
    if (input->ended) {
      const uint8_t end_of_file = 4; /* Ctrl-D */
      if (input->terminal && !write_some(input, &end_of_file, 1, &written) && input->source.fd >= 0) {
        loop_wait(&input->source, EPOLLOUT);
        return;
      }
      input_close(input);
    }
  }
  maybe_announce(input);
}

void input_close(struct input *input) {
  loop_close(&input->source);
  ring_free(&input->ring);
}
