/* spawn: serves SPAWN. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/errors.h"
#include "link/fields.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "process/launch.h"
#include "process/process.h"
#include "process/pty.h"
#include "requests.h"

enum { SPAWN_COLS = 80, SPAWN_ROWS = 24, SPAWN_PROFILE = 4 };

/* The fields of a SPAWN, and what request_spawn must release. */
struct spawn {
  struct launch plan;
  struct user_ids user;
  char id[MAX_ID + 1];
  char cwd[FIELDS_PATH_SIZE];
  char user_name[FIELDS_OWNER_SIZE * 2];
  uint64_t timeout_ms;
  uint32_t stdin_pipe;
  uint32_t ends_session;
  uint32_t quiet_ms;
  bool terminal;
  uint32_t cols, rows;
  char profile[SPAWN_PROFILE][1100]; /* HOME, USER, LOGNAME and SHELL, if env lacks them */
  void *strings;   /* one block: the pointers of argv and env, then their bytes */
  int child_fd[3]; /* given to the child */
  int own_fd[3];   /* the guest's ends; with a terminal, [1] is the master and [0] its duplicate */
};

static bool read_request(const struct wire_frame *req, struct spawn *spawn);
static bool read_strings(const struct wire_frame *req, struct spawn *spawn);
static bool read_rlimits(const struct wire_frame *req, struct spawn *spawn);
static bool resolve_user(uint32_t stream, struct spawn *spawn);
static void add_profile(struct spawn *spawn);
static bool open_stdio(struct spawn *spawn);
static bool adopt_stdio(struct process *process, struct spawn *spawn);
static void report_failure(uint32_t stream, const struct spawn *spawn);
static void release(struct spawn *spawn);

void request_spawn(const struct wire_frame *req) {
  struct spawn spawn __attribute__((cleanup(release))) = {.child_fd = {-1, -1, -1}, .own_fd = {-1, -1, -1}};
  if (!read_request(req, &spawn) || !resolve_user(req->stream, &spawn)) return;
  if (process_find(spawn.id) != NULL) {
    reply_error(req->stream, KIND_EXISTS, "request", "a process with this id exists");
    return;
  }
  add_profile(&spawn);
  if (!open_stdio(&spawn)) {
    reply_errno(req->stream, spawn.terminal ? "pty" : "stdio", errno, spawn.terminal ? "/dev/ptmx" : "stdio");
    return;
  }
  struct process *process = process_new(spawn.id);
  if (process == NULL) {
    reply_error(req->stream, KIND_LIMIT, "fork", "too many processes");
    return;
  }
  process->ends_session = spawn.ends_session != 0;
  pid_t pid = -1;
  uint64_t started_us = loop_now(); /* before the launch: a short program may have ended when it returns */
  if (!adopt_stdio(process, &spawn)) {
    reply_errno(req->stream, "stdio", errno, "epoll");
  } else if (process_attach(process, req->stream, 0)) {
    spawn.plan.mark = process->mark;
    pid = launch_process(&spawn.plan);
    if (pid < 0) report_failure(req->stream, &spawn);
  }
  if (pid < 0) {
    process_discard(process);
    return;
  }
  uint64_t timeout_us = spawn.timeout_ms > UINT64_MAX / 1000 ? UINT64_MAX : spawn.timeout_ms * 1000;
  process_started(process, pid, started_us, timeout_us, (uint64_t)spawn.quiet_ms * 1000);
}

static bool read_request(const struct wire_frame *req, struct spawn *spawn) {
  struct wire_field pty = {0};
  const struct fields_want want[] = {
      FIELDS_STR(SPAWN_id, spawn->id),
      FIELDS_STR(SPAWN_cwd, spawn->cwd),
      FIELDS_STR(SPAWN_user, spawn->user_name),
      FIELDS_U64(SPAWN_timeout_ms, &spawn->timeout_ms),
      FIELDS_U32(SPAWN_stdin, &spawn->stdin_pipe),
      FIELDS_U32(SPAWN_ends_session, &spawn->ends_session),
      FIELDS_U32(SPAWN_quiet_ms, &spawn->quiet_ms),
      FIELDS_ANY(SPAWN_pty, &pty),
  };
  if (!fields_read(req, want, sizeof want / sizeof want[0])) return false;
  spawn->terminal = pty.value != NULL;
  const struct fields_want size[] = {FIELDS_U32(SIZE_cols, &spawn->cols), FIELDS_U32(SIZE_rows, &spawn->rows)};
  const char *bad = NULL;
  if (spawn->id[0] == 0) bad = "id is missing";
  else if (spawn->stdin_pipe > 1) bad = "stdin is 0 or 1";
  else if (spawn->cwd[0] != 0 && spawn->cwd[0] != '/') bad = "cwd must be absolute";
  else if (spawn->terminal && !fields_read_record(&pty, size, 2)) bad = "pty is malformed";
  else if (spawn->cols > UINT16_MAX || spawn->rows > UINT16_MAX) bad = "pty is too large";
  else if (!read_rlimits(req, spawn)) bad = "rlimit is malformed, or there are too many";
  if (bad != NULL) {
    fields_bad(req, bad);
    return false;
  }
  spawn->plan.cwd = spawn->cwd;
  spawn->plan.terminal = spawn->terminal;
  return read_strings(req, spawn);
}

static char *copy_list(const struct wire_frame *req, uint8_t tag, char **list, char *at) {
  struct wire_cursor cursor = fields_begin(req);
  struct wire_field field;
  while (fields_each(&cursor, tag, &field)) {
    *list++ = at;
    memcpy(at, field.value, field.length);
    at[field.length] = 0;
    at += field.length + 1;
  }
  *list = NULL;
  return at;
}

static bool read_strings(const struct wire_frame *req, struct spawn *spawn) {
  const uint8_t tags[2] = {SPAWN_argv, SPAWN_env};
  size_t count[2] = {0, 0}, bytes = 0;
  struct wire_field field;
  for (int i = 0; i < 2; i++) {
    struct wire_cursor cursor = fields_begin(req);
    while (fields_each(&cursor, tags[i], &field)) {
      if (memchr(field.value, 0, field.length) != NULL || (i == 1 && memchr(field.value, '=', field.length) == NULL)) {
        fields_bad(req, i == 0 ? "argv holds a NUL" : "env is not NAME=value, or holds a NUL");
        return false;
      }
      count[i]++;
      bytes += field.length + 1;
    }
  }
  if (count[0] == 0) {
    fields_bad(req, "argv is empty");
    return false;
  }
  /* Bounded by the frame: at most one pointer per five bytes of it. */
  spawn->strings = malloc((count[0] + count[1] + 2 + SPAWN_PROFILE) * sizeof(char *) + bytes);
  if (spawn->strings == NULL) {
    reply_error(req->stream, KIND_LIMIT, "request", "no memory for argv and env");
    return false;
  }
  spawn->plan.argv = spawn->strings;
  spawn->plan.env = spawn->plan.argv + count[0] + 1;
  char *at = (char *)(spawn->plan.env + count[1] + 1 + SPAWN_PROFILE);
  at = copy_list(req, SPAWN_argv, spawn->plan.argv, at);
  copy_list(req, SPAWN_env, spawn->plan.env, at);
  return true;
}

static bool read_rlimits(const struct wire_frame *req, struct spawn *spawn) {
  struct wire_cursor cursor = fields_begin(req);
  struct wire_field field;
  while (fields_each(&cursor, SPAWN_rlimit, &field)) {
    uint32_t resource = UINT32_MAX;
    uint64_t soft = 0, hard = 0;
    const struct fields_want want[] = {
        FIELDS_U32(RLIMIT_resource, &resource), FIELDS_U64(RLIMIT_soft, &soft), FIELDS_U64(RLIMIT_hard, &hard)};
    if (spawn->plan.rlimit_count == LAUNCH_MAX_RLIMITS || !fields_read_record(&field, want, 3) ||
        resource >= RLIM_NLIMITS || soft > hard) {
      return false;
    }
    spawn->plan.rlimits[spawn->plan.rlimit_count++] = (struct launch_rlimit){(int)resource, {soft, hard}};
  }
  return true;
}

static bool resolve_user(uint32_t stream, struct spawn *spawn) {
  if (spawn->user_name[0] == 0) {
    spawn->user.uid = geteuid();
    return true;
  }
  char message[FIELDS_OWNER_SIZE * 2 + 64];
  int kind = user_lookup(spawn->user_name, &spawn->user);
  if (kind != 0) {
    snprintf(message, sizeof message, "no such user or group: %s", spawn->user_name);
    reply_error(stream, kind, "user", message);
    return false;
  }
  if (user_privileged()) {
    spawn->plan.user = &spawn->user;
    return true;
  }
  if (spawn->user.uid == geteuid()) return true;
  snprintf(message, sizeof message, "the guest may not become %s", spawn->user_name);
  reply_failure(stream, KIND_DENIED, EPERM, "user", message);
  return false;
}

/* Adds the variables that a login sets and programs rely on. read_strings reserved room for them after env. */
static void add_profile(struct spawn *spawn) {
  struct user_profile user;
  user_profile(spawn->user.uid, &user);
  const char *const name[SPAWN_PROFILE] = {"HOME", "USER", "LOGNAME", "SHELL"};
  const char *const value[SPAWN_PROFILE] = {user.home, user.name, user.name, user.shell};
  char **end = spawn->plan.env;
  while (*end != NULL) end++;
  char **added = end;
  for (int i = 0; i < SPAWN_PROFILE; i++) {
    size_t length = strlen(name[i]);
    bool given = false;
    for (char **e = spawn->plan.env; e < end && !given; e++) given = strncmp(*e, name[i], length) == 0 && (*e)[length] == '=';
    if (given || value[i][0] == 0) continue;
    snprintf(spawn->profile[i], sizeof spawn->profile[i], "%s=%s", name[i], value[i]);
    *added++ = spawn->profile[i];
  }
  *added = NULL;
}

/* child_end says which end the child gets; the guest's end is non-blocking. */
static bool open_pipe(struct spawn *spawn, int i, int child_end) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC) < 0) return false;
  spawn->child_fd[i] = fd[child_end];
  spawn->own_fd[i] = fd[1 - child_end];
  /* Opening /dev/stdout opens the pipe again, which only its owner may. */
  if (fchown(fd[child_end], spawn->user.uid, spawn->user.gid) < 0 && errno != EPERM) return false;
  return fcntl(spawn->own_fd[i], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_stdio(struct spawn *spawn) {
  struct launch *plan = &spawn->plan;
  if (spawn->terminal) {
    struct pty pty;
    uint16_t cols = (uint16_t)(spawn->cols == 0 ? SPAWN_COLS : spawn->cols);
    uint16_t rows = (uint16_t)(spawn->rows == 0 ? SPAWN_ROWS : spawn->rows);
    if (!pty_open(&pty, cols, rows, spawn->user.uid)) return false;
    spawn->child_fd[0] = pty.slave;
    spawn->own_fd[1] = pty.master;
    spawn->own_fd[0] = fcntl(pty.master, F_DUPFD_CLOEXEC, 3); /* two fds, because epoll takes each fd once */
    plan->stdin_fd = plan->stdout_fd = plan->stderr_fd = pty.slave;
    return spawn->own_fd[0] >= 0;
  }
  if (spawn->stdin_pipe) {
    if (!open_pipe(spawn, 0, 0)) return false;
  } else if ((spawn->child_fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
    /* A root without /dev/null: a pipe whose writer is closed reads as empty, too. */
    if (!open_pipe(spawn, 0, 0)) return false;
    close(spawn->own_fd[0]);
    spawn->own_fd[0] = -1;
  }
  if (!open_pipe(spawn, 1, 1) || !open_pipe(spawn, 2, 1)) return false;
  plan->stdin_fd = spawn->child_fd[0];
  plan->stdout_fd = spawn->child_fd[1];
  plan->stderr_fd = spawn->child_fd[2];
  return true;
}

/* Hands the guest's ends over to the record. */
static bool adopt_stdio(struct process *process, struct spawn *spawn) {
  process->terminal = spawn->terminal;
  if (spawn->own_fd[0] >= 0) input_open(&process->input, spawn->own_fd[0], spawn->terminal);
  spawn->own_fd[0] = -1;
  for (uint8_t i = 1; i < 3; i++) {
    int fd = spawn->own_fd[i];
    spawn->own_fd[i] = -1;
    if (fd >= 0 && !output_open(&process->output, i, fd)) return false;
  }
  return true;
}

/* EACCES of exec has three causes; look at the path to tell them apart. */
static int exec_kind(const struct spawn *spawn) {
  struct stat st;
  const char *file = spawn->plan.argv[0];
  if (spawn->plan.failed_errno != EACCES) return error_kind(spawn->plan.failed_errno);
  if (strchr(file, '/') == NULL) return KIND_NOT_EXECUTABLE; /* found in PATH, but not executable there */
  if (file[0] != '/') return KIND_DENIED;
  if (stat(file, &st) < 0) return KIND_DENIED;
  return S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0 ? KIND_DENIED : KIND_NOT_EXECUTABLE;
}

static void report_failure(uint32_t stream, const struct spawn *spawn) {
  const struct launch *plan = &spawn->plan;
  bool exec = strcmp(plan->failed_stage, "exec") == 0;
  const char *what = exec                                         ? plan->argv[0]
                     : strcmp(plan->failed_stage, "cwd") == 0     ? plan->cwd
                     : strcmp(plan->failed_stage, "user") == 0    ? spawn->user_name
                                                                  : plan->failed_stage;
  char message[1024];
  snprintf(message, sizeof message, "%.900s: %s", what, strerror(plan->failed_errno));
  int kind = exec ? exec_kind(spawn) : error_kind(plan->failed_errno);
  reply_failure(stream, kind, plan->failed_errno, plan->failed_stage, message);
}

static void release(struct spawn *spawn) {
  for (int i = 0; i < 3; i++) {
    if (spawn->child_fd[i] >= 0) close(spawn->child_fd[i]);
    if (spawn->own_fd[i] >= 0) close(spawn->own_fd[i]);
  }
  free(spawn->strings);
}
