/* ports: serves PORTS, the listening TCP sockets of the sandbox's network. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "fields.h"
#include "link.h"
#include "message.h"
#include "requests.h"
#include "wire.h"

enum {
  PORTS_MAX_PAYLOAD = 256 * 1024, /* some thousand ports; more are left out */
  PORTS_LISTEN = 10,              /* TCP_LISTEN in /proc/net/tcp */
};

/* The kernel prints addresses as 32-bit words in its own byte order. */
static bool read_address(const char *text, int family, char out[INET6_ADDRSTRLEN]) {
  uint32_t words[4];
  int count = family == AF_INET ? 1 : 4;
  for (int i = 0; i < count; i++) {
    if (sscanf(text + 8 * i, "%8x", &words[i]) != 1) return false;
  }
  return inet_ntop(family, words, out, INET6_ADDRSTRLEN) != NULL;
}

static void put_file(struct wire_out *out, const char *path, int family) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return; /* no IPv6, or no /proc */
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    char local[64], address[INET6_ADDRSTRLEN];
    unsigned port, state, uid;
    if (sscanf(line, " %*u: %63[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u", local, &port, &state, &uid) != 4) continue;
    if (state != PORTS_LISTEN || strlen(local) != (family == AF_INET ? 8 : 32)) continue;
    if (!read_address(local, family, address) || out->cap - out->len < 128) continue;
    size_t mark = wire_begin(out, OK_port);
    wire_put_u32(out, PORT_port, port);
    wire_put_str(out, PORT_address, address);
    wire_put_u32(out, PORT_uid, uid);
    wire_end(out, mark);
  }
  fclose(file);
}

void request_ports(const struct wire_frame *req) {
  if (!fields_read(req, NULL, 0)) return;
  struct wire_out out = {link_reserve(PORTS_MAX_PAYLOAD), 0, PORTS_MAX_PAYLOAD, false};
  put_file(&out, "/proc/net/tcp", AF_INET);
  put_file(&out, "/proc/net/tcp6", AF_INET6);
  link_commit(MSG_OK, req->stream, out.len);
}
