#include "link/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dispatch.h"
#include "io.h"
#include "link/loop.h"
#include "link/pages.h"
#include "link/stream.h"
#include "message.h"
#include "user.h"
#include "wire.h"

enum {
  LINK_MAX_FRAME = WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD,
  LINK_HIGH_WATER = 512 * 1024,                             /* about two full DATA frames */
  LINK_OUT_BYTES = LINK_HIGH_WATER + 2 * LINK_MAX_FRAME,    /* one turn may add a large answer and small ones */
  LINK_IN_BYTES = LINK_MAX_FRAME + 256 * 1024,
  LINK_TURN_BYTES = 1024 * 1024,                            /* input handled before other sources get their turn */
  LINK_SOCKET_BYTES = 1024 * 1024,
  LINK_KEEP_BYTES = 16 * 1024,                              /* buffer pages that stay when the link is idle */
  LINK_FIRST_DELAY_US = 10 * 1000,
  LINK_LAST_DELAY_US = 500 * 1000,
};

static struct {
  struct loop_source source;
  struct loop_timer redial;
  struct sockaddr_un address;
  char boot_id[33];
  uint64_t delay_us;      /* of the next back_off; 0: start again */
  uint64_t hang_up_us;    /* delay asked for by link_hang_up */
  bool welcomed;
  bool broken;            /* to be closed at the end of the turn */
  bool hung_up;
  size_t in_start, in_end, in_touched;
  size_t out_start, out_end, out_touched;
  size_t pages_at;        /* while spliced bytes are pending: their position in `out` */
  bool copies;            /* this socket does not support splice */
} server = {.source.fd = -1};

/* Whole pages, because release() returns whole pages to the kernel. */
#define WHOLE_PAGES(bytes) (((size_t)(bytes) + 4095) & ~(size_t)4095)
static uint8_t in[WHOLE_PAGES(LINK_IN_BYTES)] __attribute__((aligned(4096)));
static uint8_t out[WHOLE_PAGES(LINK_OUT_BYTES)] __attribute__((aligned(4096)));
static int worker_fd = -1;

static void dial(struct loop_timer *timer);
static void hello(void);
static void lost(void);
static void ready(struct loop_source *source, uint32_t events);
static void flush(void);

bool link_start(const char *path) {
  size_t length = strlen(path);
  if (length >= sizeof server.address.sun_path) return false;
  server.address.sun_family = AF_UNIX;
  memcpy(server.address.sun_path, path, length + 1);
  uint8_t random[16] = {0};
  if (getrandom(random, sizeof random, 0) != sizeof random) memcpy(random, &(uint64_t){loop_now()}, 8);
  for (size_t i = 0; i < sizeof random; i++) {
    server.boot_id[2 * i] = "0123456789abcdef"[random[i] >> 4];
    server.boot_id[2 * i + 1] = "0123456789abcdef"[random[i] & 15];
  }
  dial(&server.redial);
  return true;
}

bool link_beside(const char *name, struct sockaddr_un *address) {
  *address = server.address;
  char *slash = strrchr(address->sun_path, '/');
  char *at = slash == NULL ? address->sun_path : slash + 1;
  size_t room = sizeof address->sun_path - (size_t)(at - address->sun_path);
  return snprintf(at, room, "%s", name) < (int)room;
}

/* The delay before the next dial, which doubles each time. */
static uint64_t back_off(void) {
  uint64_t delay_us = server.delay_us == 0 ? LINK_FIRST_DELAY_US : server.delay_us;
  server.delay_us = delay_us * 2 > LINK_LAST_DELAY_US ? LINK_LAST_DELAY_US : delay_us * 2;
  return delay_us;
}

static void dial(struct loop_timer *timer) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&server.address, sizeof server.address) == 0) {
    int bytes = LINK_SOCKET_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes); /* larger is only faster */
    server.source = (struct loop_source){.fd = fd, .ready = ready};
    if (loop_wait(&server.source, EPOLLIN)) {
      hello();
      return;
    }
    server.source.fd = -1;
  }
  if (fd >= 0) close(fd);
  loop_timer_set(timer, back_off(), dial);
}

static void hello(void) {
  struct wire_out fields = WIRE_OUT(128);
  wire_put_u32(&fields, HELLO_generation, GENERATION);
  wire_put_str(&fields, HELLO_boot_id, server.boot_id);
  wire_put_u32(&fields, HELLO_privileged, user_privileged());
  link_send(MSG_HELLO, 0, fields.buf, fields.len);
}

/* Frames in flight are lost. Streams are cancelled; processes keep running. */
static void lost(void) {
  loop_close(&server.source);
  uint64_t delay_us = server.hung_up ? server.hang_up_us : 0;
  /* A server that accepts and closes at once is dialed with growing delays, like a server that is down. */
  if (!server.hung_up && !server.welcomed) delay_us = back_off();
  else server.delay_us = 0;
  server.welcomed = server.broken = server.hung_up = false;
  server.in_start = server.in_end = server.out_start = server.out_end = 0;
  pages_drop();
  stream_cancel_all();
  loop_timer_set(&server.redial, delay_us, dial);
}

static bool waits_to_be_sent(void) {
  return server.out_start < server.out_end || pages_left() > 0;
}

bool link_room(void) {
  if (worker_fd >= 0) return true;
  return server.welcomed && !server.broken && pages_left() == 0 && server.out_end - server.out_start < LINK_HIGH_WATER;
}

uint8_t *link_reserve(size_t length) {
  size_t need = WIRE_HEADER_BYTES + length;
  if (need > LINK_OUT_BYTES - server.out_end) {
    memmove(out, out + server.out_start, server.out_end - server.out_start);
    server.out_end -= server.out_start;
    server.pages_at -= pages_left() > 0 ? server.out_start : 0;
    server.out_start = 0;
  }
  /* Cannot happen while the two rules of link.h hold; if it does, drop the connection. */
  if (need > LINK_OUT_BYTES - server.out_end) {
    link_break();
    pages_drop();
    server.out_start = server.out_end = 0;
  }
  return out + server.out_end + WIRE_HEADER_BYTES;
}

void link_commit(uint8_t type, uint32_t stream, size_t length) {
  wire_header(out + server.out_end, type, stream, (uint32_t)length);
  if (worker_fd >= 0) {
    if (!io_write_all(worker_fd, out + server.out_end, WIRE_HEADER_BYTES + length)) _exit(1);
    return;
  }
  if (server.source.fd < 0 || server.broken) return;
  server.out_end += WIRE_HEADER_BYTES + length;
  if (server.out_end > server.out_touched) server.out_touched = server.out_end;
  if (server.out_end - server.out_start >= LINK_HIGH_WATER) flush();
}

void link_send(uint8_t type, uint32_t stream, const void *payload, size_t length) {
  uint8_t *at = link_reserve(length);
  if (length > 0) memcpy(at, payload, length);
  link_commit(type, stream, length);
}

ssize_t link_send_file(uint8_t type, uint32_t stream, int file, uint64_t offset, size_t length) {
  if (server.copies) {
    errno = EINVAL;
    return -1;
  }
  ssize_t n = pages_take(file, offset, length);
  if (n <= 0) return n;
  /* The header goes into the buffer; the payload is in the pipe. */
  uint8_t *payload = link_reserve(0);
  wire_header(payload - WIRE_HEADER_BYTES, type, stream, (uint32_t)n);
  server.out_end += WIRE_HEADER_BYTES;
  server.pages_at = server.out_end;
  flush();
  return n;
}

void link_hang_up(uint32_t delay_ms) {
  server.broken = true;
  server.hung_up = true;
  server.hang_up_us = (uint64_t)delay_ms * 1000;
}

void link_break(void) {
  server.broken = true;
}

bool link_welcomed(void) {
  return server.welcomed;
}

void link_welcome(void) {
  server.welcomed = true;
  server.delay_us = 0;
}

static void ready(struct loop_source *source, uint32_t events) {
  (void)source;
  if (events & EPOLLOUT) flush();
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || server.broken) return;
  if (server.in_start > 0) {
    memmove(in, in + server.in_start, server.in_end - server.in_start);
    server.in_end -= server.in_start;
    server.in_start = 0;
  }
  if (server.in_end == LINK_IN_BYTES) return;
  ssize_t n = recv(server.source.fd, in + server.in_end, LINK_IN_BYTES - server.in_end, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    server.broken = true;
    return;
  }
  server.in_end += (size_t)n;
  if (server.in_end > server.in_touched) server.in_touched = server.in_end;
}

bool link_take(void) {
  size_t handled = 0;
  while (!server.broken) {
    if (server.welcomed && !link_room()) return true;
    if (handled > LINK_TURN_BYTES) return true;
    struct wire_frame frame;
    long n = wire_decode(in + server.in_start, server.in_end - server.in_start, &frame);
    if (n == 0) break;
    if (n < 0) {
      link_break();
      break;
    }
    dispatch_frame(&frame);
    server.in_start += (size_t)n;
    handled += (size_t)n;
  }
  if (server.in_start == server.in_end) server.in_start = server.in_end = 0;
  return false;
}

/* For a socket without splice: copies the pending bytes into the buffer, at their position. */
static void copy_pages(void) {
  size_t length = pages_left();
  server.copies = true;
  link_reserve(length);
  if (pages_left() == 0) return; /* link_reserve found no room and dropped the connection */
  memmove(out + server.pages_at + length, out + server.pages_at, server.out_end - server.pages_at);
  if (!pages_copy(out + server.pages_at)) {
    pages_drop();
    link_break();
    server.out_start = server.out_end = 0; /* cut the frame off rather than send wrong bytes in it */
    return;
  }
  server.out_end += length;
  if (server.out_end > server.out_touched) server.out_touched = server.out_end;
}

/* Sends the next bytes: the buffer up to pages_at, then the spliced bytes, then the rest of the buffer. */
static ssize_t send_some(void) {
  bool pages = pages_left() > 0;
  if (!pages || server.out_start < server.pages_at) {
    size_t length = (pages ? server.pages_at : server.out_end) - server.out_start;
    ssize_t n = send(server.source.fd, out + server.out_start, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) server.out_start += (size_t)n;
    return n;
  }
  ssize_t n = pages_send(server.source.fd);
  if (n > 0 || (n < 0 && errno != EINVAL)) return n;
  copy_pages();
  return 0;
}

static void flush(void) {
  while (server.source.fd >= 0 && waits_to_be_sent()) {
    ssize_t n = send_some();
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) server.broken = true;
    break;
  }
  if (server.out_start == server.out_end) server.out_start = server.out_end = server.pages_at = 0;
}

void link_flush(void) {
  flush();
  if (server.broken) {
    lost();
    return;
  }
  if (server.source.fd < 0) return;
  /* Backpressure: while answers have no room, the server's requests wait in the socket. */
  bool read_more = server.in_end - server.in_start < LINK_IN_BYTES && (!server.welcomed || link_room());
  uint32_t events = (read_more ? EPOLLIN : 0) | (waits_to_be_sent() ? EPOLLOUT : 0);
  loop_wait(&server.source, events);
}

static size_t release(uint8_t *buffer, size_t touched) {
  if (touched <= LINK_KEEP_BYTES) return touched;
  madvise(buffer + LINK_KEEP_BYTES, WHOLE_PAGES(touched - LINK_KEEP_BYTES), MADV_DONTNEED);
  return LINK_KEEP_BYTES;
}

void link_idle(void) {
  if (server.in_start == server.in_end) server.in_touched = release(in, server.in_touched);
  if (waits_to_be_sent()) return;
  server.out_touched = release(out, server.out_touched);
  pages_drop();
}

void link_become_worker(int fd) {
  worker_fd = fd;
  server.out_start = server.out_end = 0;
}
