#include "mount/release.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  MAX_KEPT = 512,
  KEEP_MS = 1000,
  RELEASE_MS = 10 * 1000,
  MAX_SEEN = 16, /* namespaces of one cell that are handed over; more go with their processes */
};

static int handover = -1;
static pid_t keeper;

/* The keeper keeps an fd for a while, or releases everything up to it. */
enum word { KEEP, RELEASE };

static bool send_fd(enum word word, int fd) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  char byte = (char)word;
  struct iovec data = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  return sendmsg(handover, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* Receives the next fd. -1 with *ended set: the other end is closed. */
static int receive_fd(int from, enum word *word, bool *ended) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  char byte;
  int fd = -1;
  struct iovec data = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  *ended = got == 0 || (got < 0 && errno != EINTR);
  *word = got == 1 && byte == RELEASE ? RELEASE : KEEP;
  const struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
  if (header != NULL && header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

static _Noreturn void keep(int from) {
  int kept[MAX_KEPT];
  unsigned count = 0;
  uint64_t until = 0;
  bool ended = false;
  while (!ended) {
    uint64_t now = now_us();
    int wait_ms = count == 0 ? -1 : until > now ? (int)((until - now) / 1000 + 1) : 0;
    struct pollfd more = {.fd = from, .events = POLLIN};
    enum word word = KEEP;
    int fd = poll(&more, 1, wait_ms) > 0 ? receive_fd(from, &word, &ended) : -1;
    if (count == 0) until = now_us() + KEEP_MS * 1000;
    if (fd >= 0) kept[count++] = fd;
    if (count == MAX_KEPT || word == RELEASE || now_us() >= until) {
      /* In order: release_now handed over a pipe last, and sees it closed when everything before it is. */
      for (unsigned i = 0; i < count; i++) close(kept[i]);
      count = 0;
    }
  }
  _exit(0);
}

void release_open(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return;
  keeper = fork();
  if (keeper == 0) {
    /* The keeper must not hold the pool's lock or the server's socket. */
    if (dup2(ends[1], 0) < 0) _exit(1);
    syscall(SYS_close_range, 1u, ~0u, 0u);
    keep(0);
  }
  close(ends[1]);
  if (keeper < 0) close(ends[0]);
  else handover = ends[0];
}

/* The files of a dead cell take space until it is released. */
static bool room_is_scarce(void) {
  struct statvfs fs;
  return fstatvfs(warden.layers_fd, &fs) < 0 || fs.f_bavail < fs.f_blocks / 8;
}

void release_later(int proc_fd) {
  static ino_t seen[MAX_SEEN]; /* of this worker, which is a process of its own */
  static unsigned count;
  struct stat stat;
  if (handover < 0 || count == MAX_SEEN) return;
  AUTO_CLOSE int ns = openat(proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC);
  if (ns < 0 || fstat(ns, &stat) < 0) return;
  for (unsigned i = 0; i < count; i++) {
    if (seen[i] == stat.st_ino) return;
  }
  if (room_is_scarce()) return;
  if (send_fd(KEEP, ns)) seen[count++] = stat.st_ino;
}

void release_now(void) {
  int ends[2];
  if (handover < 0 || pipe2(ends, O_CLOEXEC) < 0) return;
  bool asked = send_fd(RELEASE, ends[1]);
  close(ends[1]);
  struct pollfd done = {.fd = ends[0]};
  if (asked) poll(&done, 1, RELEASE_MS);
  close(ends[0]);
}

void release_close(void) {
  if (handover < 0) return;
  close_fd(&handover);
  while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {
  }
}
