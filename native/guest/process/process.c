#include "process/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "link/fields.h"
#include "link/hash.h"
#include "link/link.h"
#include "link/reply.h"
#include "process/session.h"

enum {
  PROCESS_BUCKETS = 512,
  PROCESS_DRAIN_US = 50 * 1000, /* a background child may keep the pipes open; then the command ends after this time */
};

static struct process *by_id[PROCESS_BUCKETS], *by_pid[PROCESS_BUCKETS];
static unsigned count;

static void on_message(struct stream *stream, const struct wire_frame *frame);
static void on_cancel(struct stream *stream);
static void on_timeout(struct loop_timer *timer);
static void on_drain_over(struct loop_timer *timer);
static void send_spawned(struct loop_timer *timer);
static void run_sender(struct task *task);
static void send_exited(struct process *process);

static const struct stream_ops ops = {.process = on_message, .cancel = on_cancel};

static struct process **id_slot(const char *id) {
  struct process **at = &by_id[hash_text(id) % PROCESS_BUCKETS];
  while (*at != NULL && strcmp((*at)->id, id) != 0) at = &(*at)->next_by_id;
  return at;
}

/* Only running processes are in the pid table: the kernel may reuse a pid after it is reaped. */
static struct process **pid_slot(pid_t pid) {
  struct process **at = &by_pid[(unsigned)pid % PROCESS_BUCKETS];
  while (*at != NULL && (*at)->pid != pid) at = &(*at)->next_by_pid;
  return at;
}

struct process *process_find(const char *id) {
  return *id_slot(id);
}

struct process *process_new(const char *id) {
  struct process *process = count < MAX_PROCESSES ? calloc(1, sizeof *process) : NULL;
  if (process == NULL) return NULL;
  count++;
  strcpy(process->id, id);
  process->mark = session_new_mark();
  output_init(&process->output);
  input_init(&process->input);
  return process;
}

void process_started(struct process *process, pid_t pid, uint64_t started_us, uint64_t timeout_us, uint64_t quiet_us) {
  process->pid = pid;
  process->started_us = started_us;
  *id_slot(process->id) = process;
  struct process **at = pid_slot(pid);
  process->next_by_pid = *at;
  *at = process;
  if (timeout_us > 0) loop_timer_set(&process->timeout, timeout_us, on_timeout);
  if (quiet_us > 0) loop_timer_set(&process->quiet, quiet_us, send_spawned);
  else send_spawned(&process->quiet);
}

void process_discard(struct process *process) {
  stream_close(&process->stream);
  task_cancel(&process->sender);
  loop_timer_clear(&process->timeout);
  loop_timer_clear(&process->quiet);
  input_close(&process->input);
  output_free(&process->output);
  free(process);
  count--;
}

void process_forget_all(void) {
  for (int i = 0; i < PROCESS_BUCKETS; i++) {
    by_pid[i] = NULL;
    while (by_id[i] != NULL) {
      struct process *process = by_id[i];
      by_id[i] = process->next_by_id;
      process_discard(process);
    }
  }
}

bool process_attach(struct process *process, uint32_t stream, uint64_t from) {
  stream_close(&process->stream);
  loop_timer_clear(&process->quiet); /* it was for the previous reader */
  if (!stream_open(&process->stream, stream, &ops)) return false;
  output_rewind(&process->output, from);
  process->exit_sent = false;
  task_queue(&process->sender, run_sender);
  return true;
}

bool process_reaped(pid_t pid, int status) {
  struct process **at = pid_slot(pid);
  struct process *process = *at;
  if (process == NULL) return false;
  *at = process->next_by_pid;
  process->state = PROCESS_EXITED;
  process->status = status;
  process->exited_us = loop_now();
  loop_timer_set(&process->timeout, PROCESS_DRAIN_US, on_drain_over);
  output_note_exit(&process->output);
  /* The pid is also the session id: the kernel does not reuse it while the session has members. */
  if (process->ends_session) session_kill(pid, 0);
  process_settle(process);
  return true;
}

void process_settle(struct process *process) {
  if (process->stream.open) task_queue(&process->sender, run_sender);
  if (process->state != PROCESS_EXITED || session_dying(process->pid)) return;
  bool over = !process->timeout.armed;
  if (!output_ended(&process->output) && !(over && output_caught_up(&process->output))) return;
  loop_timer_clear(&process->timeout);
  process->state = PROCESS_ENDED;
  output_abandon(&process->output);
  input_close(&process->input);
}

void process_session_gone(pid_t session) {
  for (int i = 0; i < PROCESS_BUCKETS; i++) {
    for (struct process *p = by_id[i]; p != NULL; p = p->next_by_id) {
      if (p->pid == session && p->state == PROCESS_EXITED) process_settle(p);
    }
  }
}

static void on_timeout(struct loop_timer *timer) {
  struct process *process = container_of(timer, struct process, timeout);
  process->timed_out = true;
  session_kill(process->pid, process->mark);
}

static void on_drain_over(struct loop_timer *timer) {
  process_settle(container_of(timer, struct process, timeout));
}

static void run_sender(struct task *task) {
  struct process *process = container_of(task, struct process, sender);
  if (!process->stream.open || process->exit_sent) return;
  bool silent = process->state != PROCESS_ENDED && process->output.sent == process->output.ring.end;
  if (process->quiet.armed && !silent) {
    loop_timer_clear(&process->quiet);
    send_spawned(&process->quiet);
  }
  if (output_send(&process->output, process->stream.number)) {
    task_queue(&process->sender, run_sender);
    return;
  }
  if (process->state == PROCESS_ENDED) send_exited(process);
}

static void send_spawned(struct loop_timer *timer) {
  struct process *process = container_of(timer, struct process, quiet);
  if (!process->stream.open) return;
  struct wire_out out = WIRE_OUT(16);
  wire_put_u32(&out, SPAWNED_pid, (uint32_t)process->pid);
  link_send(MSG_SPAWNED, process->stream.number, out.buf, out.len);
}

static void send_exited(struct process *process) {
  struct wire_out out = WIRE_OUT(96);
  bool signaled = WIFSIGNALED(process->status);
  wire_put_u32(&out, EXITED_code, signaled ? 0 : (uint32_t)WEXITSTATUS(process->status));
  wire_put_u32(&out, EXITED_signal, signaled ? (uint32_t)WTERMSIG(process->status) : 0);
  wire_put_u32(&out, EXITED_timed_out, process->timed_out);
  wire_put_u64(&out, EXITED_output_end, process->output.ring.end);
  wire_put_u64(&out, EXITED_duration_us, process->exited_us - process->started_us);
  link_send(MSG_EXITED, process->stream.number, out.buf, out.len);
  process->exit_sent = true;
}

static void take_stdin(struct process *process, const struct wire_frame *frame) {
  if (frame->length < 8 || frame->length > 8 + MAX_DATA) {
    link_break();
    return;
  }
  uint64_t offset = 0;
  for (int i = 7; i >= 0; i--) offset = offset << 8 | frame->payload[i];
  uint32_t stream = process->stream.number;
  switch (input_take(&process->input, offset, frame->payload + 8, frame->length - 8)) {
    case INPUT_TAKEN: return;
    case INPUT_PAST_WINDOW: link_break(); return;
    case INPUT_GAP: reply_error(stream, KIND_BAD_REQUEST, "stdin", "there is a gap before these stdin bytes"); break;
    case INPUT_NO_MEMORY: reply_error(stream, KIND_LIMIT, "stdin", "no memory for stdin"); break;
  }
  input_close(&process->input);
  stream_close(&process->stream);
}

/* Drops the record and kills what still runs. */
static void process_forget(struct process *process) {
  if (process->state == PROCESS_RUNNING) {
    session_kill(process->pid, process->mark);
    *pid_slot(process->pid) = process->next_by_pid;
  }
  *id_slot(process->id) = process->next_by_id;
  output_abandon(&process->output);
  process_discard(process);
}

static void on_message(struct stream *stream, const struct wire_frame *frame) {
  struct process *process = container_of(stream, struct process, stream);
  uint64_t offset = 0;
  const struct fields_want ack[] = {FIELDS_U64(ACK_offset, &offset)};
  switch (frame->type) {
    case MSG_STDIN: take_stdin(process, frame); break;
    case MSG_STDIN_END: input_end(&process->input); break;
    case MSG_FORGET: process_forget(process); break;
    case MSG_ACK:
      if (!fields_read(frame, ack, 1)) {
        stream_close(stream);
      } else if (offset > process->output.sent) {
        fields_bad(frame, "ACK of output that was not sent");
        stream_close(stream);
      } else {
        output_ack(&process->output, offset);
        process_settle(process);
      }
      break;
    default: link_break();
  }
}

/* The reader is gone. The process keeps running; a later ATTACH gets everything that was not acknowledged. */
static void on_cancel(struct stream *stream) {
  struct process *process = container_of(stream, struct process, stream);
  task_cancel(&process->sender);
  loop_timer_clear(&process->quiet);
}

void process_put(struct wire_out *out, uint8_t tag, const struct process *process) {
  size_t mark = wire_begin(out, tag);
  wire_put_str(out, PROCESS_id, process->id);
  wire_put_u32(out, PROCESS_pid, (uint32_t)process->pid);
  wire_put_u32(out, PROCESS_running, process->state == PROCESS_RUNNING);
  wire_put_u64(out, PROCESS_output_start, process->output.ring.start);
  wire_put_u64(out, PROCESS_output_end, process->output.ring.end);
  wire_put_u64(out, PROCESS_stdin_offset, process->input.ring.end);
  wire_put_u32(out, PROCESS_stdin_ended, process->input.ended);
  wire_end(out, mark);
}

void process_each(void (*each)(struct process *process, void *arg), void *arg) {
  for (int i = 0; i < PROCESS_BUCKETS; i++) {
    for (struct process *p = by_id[i]; p != NULL; p = p->next_by_id) each(p, arg);
  }
}
