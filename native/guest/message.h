/*
 * message: the numbers of message.def as C constants.
 *
 * A message SPAWN is MSG_SPAWN, its field cwd is SPAWN_cwd, a record's field ENTRY_mode, an error kind
 * KIND_NOT_FOUND; constants keep their names (MAX_DATA, INITIAL_WINDOW ...).
 */
#pragma once

enum {
#define CONSTANT(name, value) name = value,
#define MESSAGE(name, code, sender, payload) MSG_##name = code,
#define FIELD(message, tag, name, kind) message##_##name = tag,
#define RECORD(name)
#define RFIELD(record, tag, name, kind) record##_##name = tag,
#define ERROR_KIND(name, code) KIND_##name = code,
#include "message.def"
#undef CONSTANT
#undef MESSAGE
#undef FIELD
#undef RECORD
#undef RFIELD
#undef ERROR_KIND
};

/* Values of ENTRY.type and EVENT.kind, as message.def says in words. */
enum { ENTRY_FILE = 1, ENTRY_DIRECTORY, ENTRY_SYMLINK, ENTRY_OTHER };
enum { EVENT_CREATED = 1, EVENT_CHANGED, EVENT_REMOVED, EVENT_OVERFLOW };
