/* ports: serves PORTS: the listening sockets and the processes that hold them. */
#include <stdlib.h>

#include "link/fields.h"
#include "link/link.h"
#include "message.h"
#include "net/holders.h"
#include "net/listening.h"
#include "requests.h"
#include "wire.h"

enum { PORTS_RECORD_BYTES = 128 }; /* more than any record needs */

void request_ports(const struct wire_frame *req) {
  if (!fields_read(req, NULL, 0)) return;
  static struct listening found[HOLDERS_MAX]; /* more than these are left out */
  static struct holder holders[HOLDERS_MAX];
  size_t count = listening_find(found, HOLDERS_MAX);
  for (size_t i = 0; i < count; i++) holders[i] = (struct holder){.inode = found[i].inode};
  qsort(holders, count, sizeof *holders, holders_by_inode);
  holders_find(holders, count);
  size_t cap = count * PORTS_RECORD_BYTES;
  struct wire_out out = {link_reserve(cap), 0, cap, false};
  for (size_t i = 0; i < count; i++) {
    const struct holder *holder = bsearch(&found[i].inode, holders, count, sizeof *holders, holders_by_inode);
    size_t mark = wire_begin(&out, OK_port);
    wire_put_u32(&out, PORT_port, found[i].port);
    wire_put_str(&out, PORT_address, found[i].address);
    wire_put_u32(&out, PORT_uid, found[i].uid);
    if (holder != NULL && holder->pid != 0) {
      wire_put_u32(&out, PORT_pid, (uint32_t)holder->pid);
      wire_put_u32(&out, PORT_session, (uint32_t)holder->session);
    }
    wire_end(&out, mark);
  }
  link_commit(MSG_OK, req->stream, out.len);
}
