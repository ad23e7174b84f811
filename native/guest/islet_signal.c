#include "islet_signal.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"
#include "json.h"

enum {
  MAX_BODY = 512 * 1024,   /* more than the server accepts */
  MAX_ANSWER = 64 * 1024,
  TIMEOUT_S = 10,
  REFUSED = 1,
  USAGE = 2,
};

#define SOCKET_NAME "inside.sock"

static char body_bytes[MAX_BODY], answer[MAX_ANSWER];

static int usage(void) {
  fputs("usage: islet-signal port PORT open|close [URL]\n"
        "       islet-signal server-ready PORT [URL]\n"
        "       islet-signal error MESSAGE...\n"
        "       islet-signal NAME [JSON]\n", stderr);
  return USAGE;
}

static int fail(const char *what, const char *why) {
  fprintf(stderr, "islet-signal: %s%s%s\n", what, *why == 0 ? "" : ": ", why);
  return REFUSED;
}

static bool is_port(const char *text) {
  char *end;
  long port = strtol(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && port >= 1 && port <= 65535;
}

static void put_address(struct json_out *body, const char *port, const char *url) {
  char number[16], local[64];
  snprintf(number, sizeof number, "%ld", strtol(port, NULL, 10)); /* JSON has no leading zeros */
  snprintf(local, sizeof local, "http://127.0.0.1:%s", number);
  json_raw(body, "\"port\":");
  json_raw(body, number);
  json_raw(body, ",\"url\":\"");
  json_text(body, url == NULL ? local : url);
  json_raw(body, "\",");
}

/* Writes the request body. False: wrong usage. */
static bool put_signal(struct json_out *body, int count, char **words) {
  const char *name = words[0];
  json_raw(body, "{");
  if (strcmp(name, "port") == 0) {
    if (count < 3 || count > 4 || !is_port(words[1])) return false;
    if (strcmp(words[2], "open") != 0 && strcmp(words[2], "close") != 0) return false;
    put_address(body, words[1], count == 4 ? words[3] : NULL);
    json_raw(body, "\"type\":\"");
    json_raw(body, words[2]);
    json_raw(body, "\",");
  } else if (strcmp(name, "server-ready") == 0) {
    if (count < 2 || count > 3 || !is_port(words[1])) return false;
    put_address(body, words[1], count == 3 ? words[2] : NULL);
  } else if (strcmp(name, "error") == 0) {
    if (count < 2) return false;
    json_raw(body, "\"message\":\"");
    for (int i = 1; i < count; i++) {
      if (i > 1) json_raw(body, " ");
      json_text(body, words[i]);
    }
    json_raw(body, "\",");
  } else if (count == 2) {
    json_raw(body, "\"data\":");
    json_raw(body, words[1]);
    json_raw(body, ",");
  } else if (count > 2) {
    return false;
  }
  /* Last, so that a "signal" key inside the user's JSON cannot override it. */
  json_raw(body, "\"signal\":\"");
  json_text(body, name);
  json_raw(body, "\"}");
  return true;
}

/* The server's socket is in the directory of this program. */
static bool find_socket(const char *self, struct sockaddr_un *address) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n > 0) path[n] = 0;
  else snprintf(path, sizeof path, "%s", self);
  char *slash = strrchr(path, '/');
  if (slash == NULL) return false;
  slash[1] = 0;
  address->sun_family = AF_UNIX;
  int length = snprintf(address->sun_path, sizeof address->sun_path, "%s" SOCKET_NAME, path);
  return length < (int)sizeof address->sun_path;
}

/* Sends the request and reads the answer; an errno, or 0. */
static int post(int fd, const struct json_out *body) {
  char head[256];
  struct timeval timeout = {.tv_sec = TIMEOUT_S};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  int length = snprintf(head, sizeof head,
                        "POST /v1/signals HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                        body->len);
  /* A server that refuses early stops reading, but its answer can still be read. */
  signal(SIGPIPE, SIG_IGN);
  if (io_write_all(fd, head, (size_t)length)) io_write_all(fd, body->buf, body->len);
  size_t received = 0;
  while (received < sizeof answer - 1) {
    ssize_t n = recv(fd, answer + received, sizeof answer - 1 - received, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && received == 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    if (n <= 0) break;
    received += (size_t)n;
  }
  answer[received] = 0;
  return 0;
}

int islet_signal(int argc, char **argv) {
  struct json_out body = {body_bytes, 0, sizeof body_bytes, false};
  struct sockaddr_un address = {0};
  if (argc < 2 || argv[1][0] == '-' || !put_signal(&body, argc - 1, argv + 1)) return usage();
  if (body.full) return fail("the signal is too long", "");
  if (!find_socket(argv[0], &address)) return fail("cannot find the server's socket", "");
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
    return fail("the server cannot be reached", strerror(errno));
  int err = post(fd, &body);
  if (err != 0) return fail("the server did not answer", strerror(err));
  int status = 0;
  sscanf(answer, "HTTP/1.%*d %d", &status);
  if (status >= 200 && status < 300) return 0;
  char message[4096];
  if (!json_find(answer, "message", message, sizeof message)) return fail("cannot parse the server's answer", "");
  return fail(message, "");
}
