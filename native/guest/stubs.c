#include "requests.h"
#include "reply.h"
#include "message.h"
void request_tar_out(const struct wire_frame *req){reply_error(req->stream,KIND_UNSUPPORTED,"request","todo");}
void request_tar_in(const struct wire_frame *req){reply_error(req->stream,KIND_UNSUPPORTED,"request","todo");}
void request_watch(const struct wire_frame *req){reply_error(req->stream,KIND_UNSUPPORTED,"request","todo");}
