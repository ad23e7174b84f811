#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch.h"

enum {
  MAX_WORKERS = 44,
  MAX_QUEUED = 2048,   /* per class; more are refused with BUSY */
  WORKER_ANSWER = 4096 /* a worker's answer; lists are answered inline */
};
static const unsigned CLASS_WORKERS[JOB_CLASSES] = {0, 8, 16, 4, 16};

struct queued {
  struct queued *next;
  uint8_t type;
  uint32_t stream, length;
  uint8_t payload[];
};

struct worker {
  pid_t pid; /* 0: free */
  int pipe;
  enum job_class class;
  uint32_t stream;
  bool answered; /* the worker may take a while to exit after its answer */
  size_t used;
  uint8_t answer[WORKER_ANSWER];
};

static struct {
  int server, epoll;
  bool gone;
  size_t used;
  uint8_t input[WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD];
  uint8_t output[WIRE_HEADER_BYTES + WIRE_MAX_PAYLOAD];
  struct request request;
  struct worker worker[MAX_WORKERS];
  unsigned running[JOB_CLASSES], queued[JOB_CLASSES];
  struct queued *first[JOB_CLASSES], *last[JOB_CLASSES];
} loop;

static void put_error(struct wire_out *out, const struct fail *fail) {
  const char *name = fail->err ? strerrorname_np(fail->err) : NULL;
  wire_put_u32(out, TAG_ERROR_kind, fail->kind);
  wire_put_str(out, TAG_ERROR_errno_name, name ? name : "");
  wire_put_str(out, TAG_ERROR_stage, fail->stage ? fail->stage : "");
  wire_put_str(out, TAG_ERROR_message, fail->message);
}

/* Writes the answer frame into `buffer` and returns its length. Without a request, the answer is `fail`. */
static size_t answer(uint8_t *buffer, size_t size, uint32_t stream, const struct request *request, struct fail *fail) {
  struct wire_out out = {.buf = buffer + WIRE_HEADER_BYTES, .cap = size - WIRE_HEADER_BYTES};
  int result = request == NULL ? -1 : dispatch(request, &out, fail);
  if (result == 0 && out.full) result = fail_kind(fail, KIND_SYSTEM, "answer", "the answer is too long");
  if (result < 0) {
    out.len = 0;
    out.full = false;
    put_error(&out, fail);
  }
  wire_header(buffer, result < 0 ? MSG_ERROR : MSG_OK, stream, (uint32_t)out.len);
  return WIRE_HEADER_BYTES + out.len;
}

static void send_all(const uint8_t *bytes, size_t length) {
  while (length > 0 && !loop.gone) {
    ssize_t sent = send(loop.server, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) loop.gone = true;
    else bytes += sent, length -= (size_t)sent;
  }
}

static void send_answer(uint32_t stream, const struct request *request, struct fail *fail) {
  send_all(loop.output, answer(loop.output, sizeof loop.output, stream, request, fail));
}

static void send_failure(uint32_t stream, uint32_t kind, const char *stage, const char *message) {
  struct fail fail;
  fail_kind(&fail, kind, stage, "%s", message);
  send_answer(stream, NULL, &fail);
}

/* Runs in the child. Tree workers die with the warden, because boot removes half-made trees; the others finish. */
static _Noreturn void work(int pipe_fd, enum job_class class, uint32_t stream) {
  static uint8_t buffer[WORKER_ANSWER];
  struct fail fail = {0};
  close(loop.server);
  close(loop.epoll);
  if (class == JOB_TREE) prctl(PR_SET_PDEATHSIG, SIGKILL);
  size_t length = answer(buffer, sizeof buffer, stream, &loop.request, &fail);
  _exit(write(pipe_fd, buffer, length) == (ssize_t)length ? 0 : 1);
}

static void start_worker(enum job_class class, uint32_t stream) {
  struct worker *worker = loop.worker;
  while (worker->pid != 0) worker++; /* MAX_WORKERS is the sum of CLASS_WORKERS */
  int ends[2] = {-1, -1};
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
  pid_t pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
  if (pid == 0) work(ends[1], class, stream);
  close_fd(&ends[1]);
  if (pid < 0 || epoll_ctl(loop.epoll, EPOLL_CTL_ADD, ends[0], &event) < 0) {
    close_fd(&ends[0]);
    if (pid > 0) waitpid(pid, NULL, 0);
    send_failure(stream, KIND_SYSTEM, "worker", "could not start a worker");
    return;
  }
  *worker = (struct worker){.pid = pid, .pipe = ends[0], .class = class, .stream = stream};
  loop.running[class]++;
}

static bool decode(const struct wire_frame *frame) {
  struct fail fail;
  if (request_decode(frame, &loop.request, &fail) == 0) return true;
  send_answer(frame->stream, NULL, &fail);
  return false;
}

static void enqueue(enum job_class class, const struct wire_frame *frame) {
  struct queued *item = loop.queued[class] >= MAX_QUEUED ? NULL : malloc(sizeof *item + frame->length);
  if (item == NULL) {
    send_failure(frame->stream, KIND_BUSY, "queue", "too many requests are waiting");
    return;
  }
  *item = (struct queued){.type = frame->type, .stream = frame->stream, .length = frame->length};
  if (frame->length > 0) memcpy(item->payload, frame->payload, frame->length);
  if (loop.last[class] != NULL) loop.last[class]->next = item;
  else loop.first[class] = item;
  loop.last[class] = item;
  loop.queued[class]++;
}

static void run_queued(enum job_class class) {
  while (loop.first[class] != NULL && loop.running[class] < CLASS_WORKERS[class]) {
    struct queued *item = loop.first[class];
    loop.first[class] = item->next;
    if (item->next == NULL) loop.last[class] = NULL;
    loop.queued[class]--;
    struct wire_frame frame = {item->type, item->stream, item->payload, item->length};
    if (decode(&frame)) start_worker(class, frame.stream);
    free(item);
  }
}

static void take(const struct wire_frame *frame) {
  struct fail fail = {0};
  if (!decode(frame)) return;
  enum job_class class = dispatch_class(frame->type);
  if (class == JOB_INLINE) send_answer(frame->stream, &loop.request, &fail);
  else if (loop.running[class] < CLASS_WORKERS[class]) start_worker(class, frame->stream);
  else enqueue(class, frame);
}

static void read_server(void) {
  ssize_t got = recv(loop.server, loop.input + loop.used, sizeof loop.input - loop.used, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    loop.gone = true;
    return;
  }
  loop.used += (size_t)got;
  size_t at = 0;
  struct wire_frame frame;
  long length;
  while ((length = wire_decode(loop.input + at, loop.used - at, &frame)) > 0) {
    take(&frame);
    at += (size_t)length;
  }
  if (length < 0) loop.gone = true; /* malformed: the following bytes cannot be decoded */
  loop.used -= at;
  if (at > 0) memmove(loop.input, loop.input + at, loop.used);
}

/* Unmounts what a killed worker left in its place (overlay_enter_place), in our own mount namespace. */
static void sweep_scratch(pid_t pid) {
  char place[sizeof warden.scratch + 16];
  snprintf(place, sizeof place, "%s/%d", warden.scratch, pid);
  if (umount2(place, MNT_DETACH) == 0) rmdir(place);
}

static void finish_worker(struct worker *worker) {
  waitpid(worker->pid, NULL, 0);
  sweep_scratch(worker->pid);
  /* Closing is not enough: other workers inherited this fd, which keeps it registered. */
  epoll_ctl(loop.epoll, EPOLL_CTL_DEL, worker->pipe, NULL);
  close_fd(&worker->pipe);
  if (!worker->answered) send_failure(worker->stream, KIND_SYSTEM, "worker", "the worker died");
  loop.running[worker->class]--;
  worker->pid = 0;
  run_queued(worker->class);
}

static void read_worker(struct worker *worker) {
  ssize_t got = read(worker->pipe, worker->answer + worker->used, sizeof worker->answer - worker->used);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    finish_worker(worker);
    return;
  }
  worker->used += (size_t)got;
  struct wire_frame frame;
  if (worker->answered || wire_decode(worker->answer, worker->used, &frame) <= 0) return;
  worker->answered = true;
  send_all(worker->answer, worker->used);
}

void loop_run(int server_fd) {
  struct epoll_event events[16], event = {.events = EPOLLIN, .data.ptr = NULL};
  loop.server = server_fd;
  loop.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (loop.epoll < 0 || epoll_ctl(loop.epoll, EPOLL_CTL_ADD, server_fd, &event) < 0) return;
  while (!loop.gone) {
    int count = epoll_wait(loop.epoll, events, 16, -1);
    for (int i = 0; i < count && !loop.gone; i++) {
      struct worker *worker = events[i].data.ptr;
      if (worker == NULL) read_server();
      else if (worker->pid != 0) read_worker(worker);
    }
  }
  for (unsigned i = 0; i < MAX_WORKERS; i++) {
    if (loop.worker[i].pid == 0) continue;
    if (loop.worker[i].class == JOB_TREE) kill(loop.worker[i].pid, SIGKILL);
    waitpid(loop.worker[i].pid, NULL, 0);
  }
}
