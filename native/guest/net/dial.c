/* dial: serves DIAL, a TCP connection to a port on the sandbox's loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/fields.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "link/ring.h"
#include "link/stream.h"
#include "link/task.h"
#include "message.h"
#include "requests.h"

enum { DIAL_CHUNK = 64 * 1024 }; /* read per turn */

struct dialing {
  struct stream stream;
  struct loop_source source;
  struct task task;  /* reads the socket into DATA */
  struct ring input; /* DATA the socket has not taken */
  uint16_t port;
  bool try_v6;       /* when 127.0.0.1 refuses */
  bool connected;
  bool own_ended;    /* the socket reached its end and END was sent */
  bool write_shut;   /* the server's END was passed on to the socket */
};

static int start(struct dialing *dialing, int family);
static void ready(struct loop_source *source, uint32_t events);
static void pull(struct task *task);
static void feed(struct dialing *dialing);
static void on_data(struct stream *stream, const uint8_t *bytes, size_t length);
static void on_end(struct stream *stream);
static void on_window(struct stream *stream);
static void on_cancel(struct stream *stream);

static const struct stream_ops ops = {.data = on_data, .end = on_end, .window = on_window, .cancel = on_cancel};

void request_dial(const struct wire_frame *req) {
  uint32_t port = 0;
  uint32_t window = INITIAL_WINDOW;
  char host[64] = "";
  const struct fields_want want[] = {
      FIELDS_U32(DIAL_port, &port),
      FIELDS_STR(DIAL_host, host),
      FIELDS_U32(DIAL_window, &window),
  };
  if (!fields_read(req, want, 3)) return;
  bool v6 = strcmp(host, "::1") == 0;
  if (port < 1 || port > 65535) {
    fields_bad(req, "port is missing or out of range");
    return;
  }
  if (host[0] != 0 && !v6 && strcmp(host, "127.0.0.1") != 0) {
    fields_bad(req, "host must be 127.0.0.1 or ::1");
    return;
  }
  struct dialing *dialing = reply_calloc(req->stream, sizeof *dialing);
  if (dialing == NULL) return;
  dialing->source.fd = -1;
  dialing->port = (uint16_t)port;
  dialing->try_v6 = host[0] == 0;
  if (!stream_open(&dialing->stream, req->stream, &ops)) {
    free(dialing);
    return;
  }
  stream_narrow(&dialing->stream, window);
  int err = start(dialing, v6 ? AF_INET6 : AF_INET);
  if (err != 0) {
    reply_errno(req->stream, "connect", err, host[0] == 0 ? "localhost" : host);
    stream_close(&dialing->stream);
    free(dialing);
  }
}

static void release(struct dialing *dialing) {
  stream_close(&dialing->stream);
  task_cancel(&dialing->task);
  loop_close(&dialing->source);
  ring_free(&dialing->input);
  free(dialing);
}

/* Sends ERROR and ends the stream. */
static void fail(struct dialing *dialing, const char *stage, int err) {
  reply_errno(dialing->stream.number, stage, err, "connection");
  release(dialing);
}

/* Starts to connect; `ready` gets the result. 0 or an errno. */
static int start(struct dialing *dialing, int family) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(dialing->port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(dialing->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1;
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  int rc = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof v4) : connect(fd, (struct sockaddr *)&v6, sizeof v6);
  dialing->source = (struct loop_source){.fd = fd, .ready = ready};
  if ((rc == 0 || errno == EINPROGRESS) && loop_wait(&dialing->source, EPOLLOUT)) return 0;
  int err = errno;
  loop_close(&dialing->source);
  if (family == AF_INET && dialing->try_v6) {
    dialing->try_v6 = false;
    return start(dialing, AF_INET6);
  }
  return err;
}

/* Reads only while no task is queued, the window has room and the end was not reached. */
static void update_interest(struct dialing *dialing) {
  bool read_more = dialing->connected && !dialing->own_ended && !dialing->task.queued && stream_may_send(&dialing->stream) > 0;
  bool write_more = !dialing->connected || dialing->input.start < dialing->input.end;
  loop_wait(&dialing->source, (read_more ? EPOLLIN : 0) | (write_more ? EPOLLOUT : 0));
}

static void finish_connect(struct dialing *dialing) {
  int err = 0;
  socklen_t length = sizeof err;
  getsockopt(dialing->source.fd, SOL_SOCKET, SO_ERROR, &err, &length);
  if (err != 0) {
    loop_close(&dialing->source);
    bool again = dialing->try_v6;
    dialing->try_v6 = false;
    if (again && start(dialing, AF_INET6) == 0) return;
    fail(dialing, "connect", err);
    return;
  }
  dialing->connected = true;
  reply_opened(dialing->stream.number);
  feed(dialing);
}

static void ready(struct loop_source *source, uint32_t events) {
  struct dialing *dialing = container_of(source, struct dialing, source);
  if (!dialing->connected) {
    finish_connect(dialing);
    return;
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !dialing->own_ended) task_queue(&dialing->task, pull);
  if (events & (EPOLLOUT | EPOLLERR)) feed(dialing);
  else update_interest(dialing);
}

static bool over(struct dialing *dialing) {
  if (!dialing->own_ended || !dialing->write_shut) return false;
  release(dialing);
  return true;
}

/* Sends one DATA frame from the socket. */
static void pull(struct task *task) {
  struct dialing *dialing = container_of(task, struct dialing, task);
  size_t want = stream_may_send(&dialing->stream);
  if (want > DIAL_CHUNK) want = DIAL_CHUNK;
  if (want == 0 || dialing->own_ended) {
    update_interest(dialing);
    return;
  }
  ssize_t n = recv(dialing->source.fd, link_reserve(want), want, MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    fail(dialing, "read", errno);
    return;
  }
  if (n > 0) {
    link_commit(MSG_DATA, dialing->stream.number, (size_t)n);
    dialing->stream.sent += (uint64_t)n;
  } else if (n == 0) {
    dialing->own_ended = true;
    link_send(MSG_END, dialing->stream.number, NULL, 0);
    if (over(dialing)) return;
  }
  update_interest(dialing);
}

/* Passes the server's bytes on to the socket, then its END. */
static void feed(struct dialing *dialing) {
  int err;
  size_t sent = ring_send(&dialing->input, dialing->source.fd, &err);
  if (err != 0) {
    fail(dialing, "write", err);
    return;
  }
  stream_consume(&dialing->stream, sent);
  bool all_sent = dialing->input.start == dialing->input.end;
  if (all_sent && dialing->stream.peer_ended && !dialing->write_shut) {
    shutdown(dialing->source.fd, SHUT_WR);
    dialing->write_shut = true;
    if (over(dialing)) return;
  }
  update_interest(dialing);
}

static void on_data(struct stream *stream, const uint8_t *bytes, size_t length) {
  struct dialing *dialing = container_of(stream, struct dialing, stream);
  if (!ring_put(&dialing->input, bytes, length, INITIAL_WINDOW)) fail(dialing, "write", ENOMEM);
  else if (dialing->connected) feed(dialing);
}

static void on_end(struct stream *stream) {
  struct dialing *dialing = container_of(stream, struct dialing, stream);
  if (dialing->connected) feed(dialing);
}

static void on_window(struct stream *stream) {
  struct dialing *dialing = container_of(stream, struct dialing, stream);
  if (dialing->connected) update_interest(dialing);
}

static void on_cancel(struct stream *stream) {
  release(container_of(stream, struct dialing, stream));
}
