// The least that running a command over a socket costs: spawn PATH listens on the unix socket PATH and serves each
// connection in a process of its own.
//
//   request   bytes: length of the rest (1), then the words of the command, each ended by a NUL
//   answer    bytes: exit code (1)
//
// No wall, no output, no limits, no record: posix_spawn, wait, answer.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 16 };
extern char **environ;

static int read_all(int fd, char *to, size_t n) {
  for (size_t got = 0; got < n;) {
    ssize_t r = read(fd, to + got, n - got);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return -1;
    got += (size_t)r;
  }
  return 0;
}

static unsigned char run(char **argv, posix_spawn_file_actions_t *actions) {
  pid_t pid;
  int status;
  if (posix_spawnp(&pid, argv[0], actions, NULL, argv, environ) != 0) return 127;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return 126;
  return WIFEXITED(status) ? (unsigned char)WEXITSTATUS(status) : 125;
}

static void serve(int fd, posix_spawn_file_actions_t *actions) {
  unsigned char length;
  char words[256];
  while (read_all(fd, (char *)&length, 1) == 0 && read_all(fd, words, length) == 0) {
    words[length] = 0;
    char *argv[MAX_WORDS + 1];
    int count = 0;
    for (char *word = words; word < words + length && count < MAX_WORDS; word += strlen(word) + 1) argv[count++] = word;
    argv[count] = NULL;
    unsigned char code = count > 0 ? run(argv, actions) : 127;
    if (write(fd, &code, 1) != 1) return;
  }
}

int main(int argc, char **argv) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) return 2;
  memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 64) < 0) {
    perror(argv[1]);
    return 1;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, 0, 1);
  puts("listening");
  fflush(stdout);
  for (;;) {
    while (waitpid(-1, NULL, WNOHANG) > 0);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) continue;
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(listener);
      serve(fd, &actions);
      _exit(0);
    }
    close(fd);
  }
}
