#include "link/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "link/ring.h"
#include "link/stream.h"
#include "link/task.h"
#include "message.h"

enum {
  WORKER_MAX = 256, /* at once */
  WORKER_FD = 3,    /* its socket, in the worker */
  WORKER_BUFFER = WIRE_HEADER_BYTES + WORKER_MAX_PAYLOAD,
};

struct worker {
  struct stream stream;
  struct loop_source source;
  struct task task; /* passes frames on */
  pid_t pid;        /* 0 once it is reaped */
  uint8_t *buffer;  /* frames from the worker; NULL while empty */
  size_t length;
  struct ring input; /* DATA that the worker has not taken */
  struct worker *next;
};

static struct worker *workers;
static unsigned count;

static void run_worker(int fd, uint32_t stream, worker_job job, const void *arg) __attribute__((noreturn));
static void ready(struct loop_source *source, uint32_t events);
static void forward(struct task *task);
static void on_data(struct stream *stream, const uint8_t *bytes, size_t length);
static void on_end(struct stream *stream);
static void on_window(struct stream *stream);
static void on_cancel(struct stream *stream);

static const struct stream_ops sends = {.window = on_window, .cancel = on_cancel};
static const struct stream_ops takes = {.data = on_data, .end = on_end, .window = on_window, .cancel = on_cancel};

struct stream *worker_start(uint32_t stream, worker_job job, const void *arg, bool takes_data) {
  int fd[2];
  struct worker *worker = count < WORKER_MAX ? calloc(1, sizeof *worker) : NULL;
  if (worker == NULL) {
    reply_error(stream, KIND_LIMIT, "request", "too many file operations at once");
    return NULL;
  }
  if (!stream_open(&worker->stream, stream, takes_data ? &takes : &sends)) {
    free(worker);
    return NULL;
  }
  int err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0 ? errno : 0;
  if (err == 0) {
    pid_t pid = fork();
    if (pid == 0) run_worker(fd[1], stream, job, arg);
    err = pid < 0 ? errno : 0;
    worker->pid = pid;
    close(fd[1]);
    worker->source = (struct loop_source){.fd = fd[0], .ready = ready};
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    if (err == 0 && !loop_wait(&worker->source, EPOLLIN)) {
      err = errno;
      kill(pid, SIGKILL);
    }
    if (err != 0) close(fd[0]);
  }
  if (err != 0) {
    reply_errno(stream, "fork", err, "worker");
    stream_close(&worker->stream);
    free(worker);
    return NULL;
  }
  worker->next = workers;
  workers = worker;
  count++;
  return &worker->stream;
}

static void run_worker(int fd, uint32_t stream, worker_job job, const void *arg) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup2(fd, WORKER_FD) < 0) _exit(1);
  syscall(SYS_close_range, (unsigned)WORKER_FD + 1, ~0u, 0u);
  link_become_worker(WORKER_FD);
  job(stream, arg);
  _exit(0);
}

size_t worker_read(void *buffer, size_t length) {
  size_t done = 0;
  while (done < length) {
    ssize_t n = read(WORKER_FD, (char *)buffer + done, length - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) _exit(1);
    if (n == 0) break;
    done += (size_t)n;
  }
  return done;
}

void worker_reaped(pid_t pid) {
  for (struct worker *w = workers; w != NULL; w = w->next) {
    if (w->pid == pid) w->pid = 0;
  }
}

static void release(struct worker *worker) {
  stream_close(&worker->stream);
  task_cancel(&worker->task);
  loop_close(&worker->source);
  if (worker->pid > 0) kill(worker->pid, SIGKILL);
  ring_free(&worker->input);
  free(worker->buffer);
  struct worker **at = &workers;
  while (*at != worker) at = &(*at)->next;
  *at = worker->next;
  count--;
  free(worker);
}

/* Sends waiting bytes to the worker and raises the window by what it took. */
static void feed(struct worker *worker) {
  int err;
  size_t taken = ring_send(&worker->input, worker->source.fd, &err);
  if (err != 0) { /* the worker has sent its ERROR, or died: discard the rest until its socket ends */
    taken += (size_t)(worker->input.end - worker->input.start);
    ring_free(&worker->input);
  }
  stream_consume(&worker->stream, taken);
  if (worker->input.start == worker->input.end && worker->stream.peer_ended) shutdown(worker->source.fd, SHUT_WR);
}

static uint32_t interest(const struct worker *worker) {
  bool full = worker->length == WORKER_BUFFER;
  return (full || worker->task.queued ? 0 : EPOLLIN) | (worker->input.start < worker->input.end ? EPOLLOUT : 0);
}

static void ready(struct loop_source *source, uint32_t events) {
  struct worker *worker = container_of(source, struct worker, source);
  if (events & EPOLLOUT) feed(worker);
  if (worker->buffer == NULL) worker->buffer = malloc(WORKER_BUFFER);
  if (worker->buffer == NULL) {
    reply_no_memory(worker->stream.number);
    release(worker);
    return;
  }
  /* The end of its socket counts only after all its frames have been forwarded. */
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && source->events & EPOLLIN) {
    ssize_t n = recv(source->fd, worker->buffer + worker->length, WORKER_BUFFER - worker->length, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      reply_error(worker->stream.number, KIND_IO, "worker", "the worker was killed");
      release(worker);
      return;
    }
    if (n > 0) worker->length += (size_t)n;
  }
  if (link_room()) {
    forward(&worker->task);
    return;
  }
  task_queue(&worker->task, forward);
  loop_wait(source, interest(worker));
}

/* True if it was the worker's last frame. */
static bool pass_on(struct worker *worker, const struct wire_frame *frame) {
  link_send(frame->type, worker->stream.number, frame->payload, frame->length);
  if (frame->type == MSG_DATA || frame->type == MSG_ENTRIES) worker->stream.sent += frame->length;
  return frame->type == MSG_OK || frame->type == MSG_ERROR || frame->type == MSG_END;
}

static void forward(struct task *task) {
  struct worker *worker = container_of(task, struct worker, task);
  struct wire_frame frame;
  size_t at = 0;
  long n;
  bool blocked = false;
  while (!blocked && worker->length > at && (n = wire_decode(worker->buffer + at, worker->length - at, &frame)) > 0) {
    bool counted = frame.type == MSG_DATA || frame.type == MSG_ENTRIES;
    if (counted && frame.length > worker->stream.send_limit - worker->stream.sent) {
      blocked = true; /* until on_window */
    } else if (!link_room()) {
      blocked = true;
      task_queue(task, forward);
    } else {
      at += (size_t)n;
      if (pass_on(worker, &frame)) {
        release(worker);
        return;
      }
    }
  }
  if (at > 0) memmove(worker->buffer, worker->buffer + at, worker->length - at);
  worker->length -= at;
  if (worker->length == 0) {
    free(worker->buffer);
    worker->buffer = NULL;
  }
  /* Backpressure: while a frame waits for the window, nothing more is read from the worker. */
  loop_wait(&worker->source, blocked ? interest(worker) & ~(uint32_t)EPOLLIN : interest(worker));
}

static void on_data(struct stream *stream, const uint8_t *bytes, size_t length) {
  struct worker *worker = container_of(stream, struct worker, stream);
  if (!ring_put(&worker->input, bytes, length, INITIAL_WINDOW)) {
    reply_no_memory(stream->number);
    release(worker);
    return;
  }
  feed(worker);
  loop_wait(&worker->source, interest(worker));
}

static void on_end(struct stream *stream) {
  feed(container_of(stream, struct worker, stream));
}

static void on_window(struct stream *stream) {
  struct worker *worker = container_of(stream, struct worker, stream);
  if (worker->length > 0) task_queue(&worker->task, forward);
}

static void on_cancel(struct stream *stream) {
  release(container_of(stream, struct worker, stream));
}
