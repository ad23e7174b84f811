/* The codes of message.def as C constants: MSG_BIND, TAG_BIND_pid, REC_TREE_at, KIND_NOT_FOUND, MAX_LOWERS. */
#pragma once

enum {
#define CONSTANT(name, value) name = value,
#define MESSAGE(name, code, sender, payload) MSG_##name = code,
#define FIELD(owner, tag, name, kind) TAG_##owner##_##name = tag,
#define RECORD(name)
#define RFIELD(owner, tag, name, kind) REC_##owner##_##name = tag,
#define ERROR_KIND(name, code) KIND_##name = code,
#include "message.def"
#undef CONSTANT
#undef MESSAGE
#undef FIELD
#undef RECORD
#undef RFIELD
#undef ERROR_KIND
};
