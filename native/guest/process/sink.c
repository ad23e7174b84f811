#include "process/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/loop.h"

struct sink {
  struct loop_source source;
  struct sink *next, **at;
};

/* All sinks: otherwise only epoll would hold pointers to them, and a leak checker would report them. */
static struct sink *sinks;

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  static char scratch[16 * 1024];
  ssize_t n = read(source->fd, scratch, sizeof scratch);
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  struct sink *sink = container_of(source, struct sink, source);
  loop_close(source);
  *sink->at = sink->next;
  if (sink->next != NULL) sink->next->at = sink->at;
  free(sink);
}

void sink_add(int fd) {
  struct sink *sink = calloc(1, sizeof *sink);
  if (sink == NULL) {
    close(fd);
    return;
  }
  sink->source = (struct loop_source){.fd = fd, .ready = ready};
  if (!loop_wait(&sink->source, EPOLLIN)) {
    close(fd);
    free(sink);
    return;
  }
  sink->at = &sinks;
  sink->next = sinks;
  if (sinks != NULL) sinks->at = &sink->next;
  sinks = sink;
}
