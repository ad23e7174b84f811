/* requests: every handler of a request, one per message. Each answers on req->stream, now or later. */
#pragma once

#include "wire.h"

/* setup.c, machine.c, ports.c */
void request_setup(const struct wire_frame *req);
void request_kill_all(const struct wire_frame *req);
void request_ports(const struct wire_frame *req);
/* spawn.c, control.c */
void request_spawn(const struct wire_frame *req);
void request_attach(const struct wire_frame *req);
void request_signal(const struct wire_frame *req);
void request_resize(const struct wire_frame *req);
void request_processes(const struct wire_frame *req);
/* file.c; request_move is in copy.c */
void request_stat(const struct wire_frame *req);
void request_mkdir(const struct wire_frame *req);
void request_chmod(const struct wire_frame *req);
void request_chown(const struct wire_frame *req);
void request_symlink(const struct wire_frame *req);
void request_realpath(const struct wire_frame *req);
void request_move(const struct wire_frame *req);
/* read.c, write.c */
void request_read(const struct wire_frame *req);
void request_write(const struct wire_frame *req);
/* list.c, copy.c, remove.c, tar_out.c, tar_in.c: in a worker */
void request_list(const struct wire_frame *req);
void request_copy(const struct wire_frame *req);
void request_remove(const struct wire_frame *req);
void request_tar_out(const struct wire_frame *req);
void request_tar_in(const struct wire_frame *req);
/* watch.c, dial.c, expose.c */
void request_watch(const struct wire_frame *req);
void request_dial(const struct wire_frame *req);
void request_expose(const struct wire_frame *req);
