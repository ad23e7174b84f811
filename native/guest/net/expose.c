/* expose: serves EXPOSE: a port on the sandbox's loopback that forwards to a unix socket of the server. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "link/fields.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "message.h"
#include "net/join.h"
#include "requests.h"

enum {
  EXPOSE_MAX = 4,
  EXPOSE_MAX_CONNECTIONS = 64, /* of all ports together; more wait in the backlog */
  EXPOSE_BACKLOG = 128,
  EXPOSE_PAUSE_US = 100 * 1000, /* after accept failed for lack of resources */
};

struct exposed {
  struct loop_source source;
  struct sockaddr_un to;
  uint16_t port;
};

static struct exposed exposed[EXPOSE_MAX];
static unsigned exposed_count;
static unsigned connections;
static struct loop_timer pause_timer;

static int start(struct exposed *one);
static void ready(struct loop_source *source, uint32_t events);

void request_expose(const struct wire_frame *req) {
  char name[64] = "";
  struct sockaddr_un to;
  const struct fields_want want[] = {FIELDS_STR(EXPOSE_socket, name)};
  if (!fields_read(req, want, 1)) return;
  if (name[0] == 0 || name[0] == '.' || strchr(name, '/') != NULL || !link_beside(name, &to)) {
    fields_bad(req, "socket is the name of one beside the guest's own");
    return;
  }
  struct exposed *one = exposed;
  while (one < exposed + exposed_count && strcmp(one->to.sun_path, to.sun_path) != 0) one++;
  if (one == exposed + EXPOSE_MAX) {
    reply_error(req->stream, KIND_LIMIT, "request", "too many sockets are exposed");
    return;
  }
  if (one == exposed + exposed_count) {
    one->to = to;
    int err = start(one);
    if (err != 0) {
      reply_errno(req->stream, "listen", err, "127.0.0.1");
      return;
    }
    exposed_count++;
  }
  reply_count(req->stream, one->port);
}

/* 0 or an errno. */
static int start(struct exposed *one) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  one->source = (struct loop_source){.fd = fd, .ready = ready};
  if (bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, EXPOSE_BACKLOG) == 0 &&
      getsockname(fd, (struct sockaddr *)&address, &length) == 0 && loop_wait(&one->source, EPOLLIN)) {
    one->port = ntohs(address.sin_port);
    return 0;
  }
  int err = errno;
  loop_close(&one->source);
  return err;
}

static void update_interest(void) {
  for (unsigned i = 0; i < exposed_count; i++) {
    bool takes = connections < EXPOSE_MAX_CONNECTIONS && !pause_timer.armed;
    loop_wait(&exposed[i].source, takes ? EPOLLIN : 0);
  }
}

static void on_pause_over(struct loop_timer *timer) {
  (void)timer;
  update_interest();
}

static void on_over(void) {
  connections--;
  update_interest();
}

/* Accepts one connection per turn. If the server cannot be reached the connection is closed; the client may retry. */
static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  const struct exposed *one = container_of(source, struct exposed, source);
  int inner = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (inner < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    loop_timer_set(&pause_timer, EXPOSE_PAUSE_US, on_pause_over);
    update_interest();
    return;
  }
  int outer = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (outer < 0 || connect(outer, (const struct sockaddr *)&one->to, sizeof one->to) < 0) {
    if (outer >= 0) close(outer);
    close(inner);
    return;
  }
  int yes = 1;
  setsockopt(inner, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (join_start(inner, outer, on_over)) connections++;
  update_interest();
}
