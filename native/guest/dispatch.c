#include "dispatch.h"

#include <stdbool.h>
#include <stddef.h>

#include "link/fields.h"
#include "link/link.h"
#include "link/stream.h"
#include "message.h"
#include "requests.h"

enum { PING_MAX = 64 };

enum sender { UNKNOWN, SERVER, GUEST, BOTH };

static const uint8_t senders[256] = {
#define CONSTANT(name, value)
#define MESSAGE(name, code, sender, payload) [code] = sender,
#define FIELD(message, tag, name, kind)
#define RECORD(name)
#define RFIELD(record, tag, name, kind)
#define ERROR_KIND(name, code)
#include "message.def"
};

static void (*const requests[256])(const struct wire_frame *req) = {
    [MSG_SETUP] = request_setup,
    [MSG_KILL_ALL] = request_kill_all,
    [MSG_PORTS] = request_ports,
    [MSG_SPAWN] = request_spawn,
    [MSG_ATTACH] = request_attach,
    [MSG_SIGNAL] = request_signal,
    [MSG_RESIZE] = request_resize,
    [MSG_PROCESSES] = request_processes,
    [MSG_STAT] = request_stat,
    [MSG_LIST] = request_list,
    [MSG_READ] = request_read,
    [MSG_WRITE] = request_write,
    [MSG_MKDIR] = request_mkdir,
    [MSG_MOVE] = request_move,
    [MSG_COPY] = request_copy,
    [MSG_REMOVE] = request_remove,
    [MSG_CHMOD] = request_chmod,
    [MSG_CHOWN] = request_chown,
    [MSG_SYMLINK] = request_symlink,
    [MSG_REALPATH] = request_realpath,
    [MSG_TAR_OUT] = request_tar_out,
    [MSG_TAR_IN] = request_tar_in,
    [MSG_WATCH] = request_watch,
    [MSG_DIAL] = request_dial,
    [MSG_EXPOSE] = request_expose,
};

static void connection_frame(const struct wire_frame *frame);

void dispatch_frame(const struct wire_frame *frame) {
  uint8_t sender = senders[frame->type];
  bool greeting = frame->type == MSG_WELCOME;
  if ((sender != SERVER && sender != BOTH) || greeting == link_welcomed()) {
    link_break();
    return;
  }
  if (frame->stream == 0) {
    connection_frame(frame);
    return;
  }
  if (requests[frame->type] == NULL) {
    if (frame->type < MSG_OK) link_break(); /* a connection message on a stream */
    else stream_frame(frame);
    return;
  }
  if (stream_in_use(frame->stream)) link_break();
  else requests[frame->type](frame);
}

static void connection_frame(const struct wire_frame *frame) {
  uint32_t generation = 0, delay_ms = 0;
  const struct fields_want welcome[] = {FIELDS_U32(WELCOME_generation, &generation)};
  const struct fields_want hang_up[] = {FIELDS_U32(HANGUP_delay_ms, &delay_ms)};
  struct wire_field fields = {0, frame->length, frame->payload};
  switch (frame->type) {
    case MSG_WELCOME:
      if (fields_read_record(&fields, welcome, 1) && generation == GENERATION) link_welcome();
      else link_break();
      break;
    case MSG_PING:
      if (frame->length > PING_MAX) link_break();
      else link_send(MSG_PONG, 0, frame->payload, frame->length);
      break;
    case MSG_HANGUP:
      if (fields_read_record(&fields, hang_up, 1)) link_hang_up(delay_ms);
      else link_break();
      break;
    default: link_break();
  }
}
