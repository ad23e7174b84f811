/* machine: serves KILL_ALL, and shuts down a guest that is not PID 1. */
#include "process/machine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "link/loop.h"
#include "link/reply.h"
#include "link/stream.h"
#include "process/process.h"
#include "process/reap.h"
#include "process/session.h"
#include "requests.h"

enum {
  MACHINE_PASS_US = 1000,
  MACHINE_PASSES = 3000, /* about three seconds: a process that survives that hangs in the kernel */
};

static struct stream waiting; /* the KILL_ALL being served */
static struct loop_timer pass_timer;
static unsigned passes;

static void kill_pass(struct loop_timer *timer);

static void on_cancel(struct stream *stream) {
  (void)stream;
  loop_timer_clear(&pass_timer);
}

static const struct stream_ops ops = {.cancel = on_cancel};

void request_kill_all(const struct wire_frame *req) {
  if (getpid() != 1) {
    reply_error(req->stream, KIND_UNSUPPORTED, "request", "the guest is not PID 1; kill(-1) would reach other processes of the machine");
    return;
  }
  if (waiting.open) {
    reply_error(req->stream, KIND_EXISTS, "request", "another KILL_ALL is being served");
    return;
  }
  if (!stream_open(&waiting, req->stream, &ops)) return;
  process_forget_all();
  passes = 0;
  kill_pass(&pass_timer);
}

static void count_alive(const struct session_member *member, void *arg) {
  if (member->pid != 1 && member->state != 'Z') ++*(unsigned *)arg;
}

/* Answers when no other process is left: the next root may be bound right after the OK. */
static void kill_pass(struct loop_timer *timer) {
  bool gone = kill(-1, SIGKILL) < 0 && errno == ESRCH;
  bool children = reap_turn();
  if (!(gone && !children) && ++passes < MACHINE_PASSES) {
    loop_timer_set(timer, MACHINE_PASS_US, kill_pass);
    return;
  }
  unsigned alive = 0;
  if (!gone) session_scan(count_alive, &alive);
  stream_close(&waiting);
  if (alive == 0) reply_ok(waiting.number);
  else reply_error(waiting.number, KIND_IO, "kill", "some processes do not die");
}

static void kill_child(const struct session_member *member, void *arg) {
  (void)arg;
  if (member->parent == getpid()) kill(member->pid, SIGKILL);
}

void machine_end(void) {
  stream_cancel_all(); /* removes unfinished files */
  /* The guest is a subreaper: when a child dies, the child's children become the guest's own. */
  for (unsigned i = 0; i < MACHINE_PASSES; i++) {
    session_scan(kill_child, NULL);
    if (!reap_turn()) break;
    usleep(MACHINE_PASS_US);
  }
  process_forget_all();
  exit(0);
}
