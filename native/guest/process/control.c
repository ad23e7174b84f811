/* control: serves ATTACH, SIGNAL, RESIZE and PROCESSES. */
#include <errno.h>
#include <signal.h>

#include "link/fields.h"
#include "link/link.h"
#include "link/reply.h"
#include "process/process.h"
#include "process/pty.h"
#include "process/session.h"
#include "requests.h"

static struct process *find(const struct wire_frame *req, const char *id) {
  struct process *process = process_find(id);
  if (process == NULL) reply_error(req->stream, KIND_NO_PROCESS, "request", "no process has this id");
  return process;
}

void request_attach(const struct wire_frame *req) {
  char id[MAX_ID + 1] = "";
  uint64_t offset = 0;
  const struct fields_want want[] = {FIELDS_STR(ATTACH_id, id), FIELDS_U64(ATTACH_offset, &offset)};
  if (!fields_read(req, want, 2)) return;
  struct process *process = find(req, id);
  if (process == NULL) return;
  if (offset < process->output.ring.start || offset > process->output.ring.end) {
    fields_bad(req, "output at this offset is not available");
    return;
  }
  if (!process_attach(process, req->stream, offset)) return;
  struct wire_out out = WIRE_OUT(256);
  process_put(&out, ATTACHED_process, process);
  link_send(MSG_ATTACHED, req->stream, out.buf, out.len);
  if (!process->input.ended) input_announce(&process->input, req->stream);
}

void request_signal(const struct wire_frame *req) {
  char id[MAX_ID + 1] = "";
  uint32_t signal = 0, group = 0;
  const struct fields_want want[] = {
      FIELDS_STR(SIGNAL_id, id), FIELDS_U32(SIGNAL_signal, &signal), FIELDS_U32(SIGNAL_group, &group)};
  if (!fields_read(req, want, 3)) return;
  struct process *process = find(req, id);
  if (process == NULL) return;
  if (signal < 1 || signal > (uint32_t)SIGRTMAX) {
    fields_bad(req, "no such signal");
    return;
  }
  /* After the process is reaped, its pid may belong to another process. */
  if (process->state != PROCESS_RUNNING) {
    reply_error(req->stream, KIND_NO_PROCESS, "signal", "the process has ended");
    return;
  }
  int err = 0;
  if (!group) err = kill(process->pid, (int)signal) < 0 ? errno : 0;
  else if (signal == SIGKILL) session_kill(process->pid, process->mark);
  else err = session_signal(process->pid, (int)signal);
  if (err != 0) reply_errno(req->stream, "signal", err, id);
  else reply_ok(req->stream);
}

void request_resize(const struct wire_frame *req) {
  char id[MAX_ID + 1] = "";
  uint32_t cols = 0, rows = 0;
  struct wire_field size = {0};
  const struct fields_want want[] = {FIELDS_STR(RESIZE_id, id), FIELDS_ANY(RESIZE_size, &size)};
  const struct fields_want parts[] = {FIELDS_U32(SIZE_cols, &cols), FIELDS_U32(SIZE_rows, &rows)};
  if (!fields_read(req, want, 2)) return;
  struct process *process = find(req, id);
  if (process == NULL) return;
  if (size.value == NULL || !fields_read_record(&size, parts, 2) || cols - 1 >= UINT16_MAX || rows - 1 >= UINT16_MAX) {
    fields_bad(req, "size is missing or out of range");
    return;
  }
  if (!process->terminal) {
    reply_error(req->stream, KIND_UNSUPPORTED, "resize", "the process has no terminal");
    return;
  }
  int master = process->output.channel[0].source.fd;
  if (master < 0) reply_error(req->stream, KIND_NO_PROCESS, "resize", "the terminal is closed");
  else if (!pty_resize(master, (uint16_t)cols, (uint16_t)rows)) reply_errno(req->stream, "resize", errno, id);
  else reply_ok(req->stream);
}

static void put(struct process *process, void *arg) {
  process_put(arg, OK_process, process);
}

void request_processes(const struct wire_frame *req) {
  uint8_t *payload = link_reserve(WIRE_MAX_PAYLOAD); /* fits MAX_PROCESSES records */
  struct wire_out out = {payload, 0, WIRE_MAX_PAYLOAD, false};
  process_each(put, &out);
  link_commit(MSG_OK, req->stream, out.len);
}
