#include "sink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  static char scratch[16 * 1024];
  ssize_t n = read(source->fd, scratch, sizeof scratch);
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  loop_close(source);
  free(source);
}

void sink_add(int fd) {
  struct loop_source *source = calloc(1, sizeof *source);
  if (source == NULL) {
    close(fd);
    return;
  }
  *source = (struct loop_source){.fd = fd, .ready = ready};
  if (loop_wait(source, EPOLLIN)) return;
  close(fd);
  free(source);
}
