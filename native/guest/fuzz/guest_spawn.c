/* Fuzzes the reading of SPAWN and the look-up of users. Nothing is started: the launch is a stand-in. */
#include "../link/errors.c"
#include "../link/fields.c"
#include "../user.c"
#define release spawn_release
#include "../process/spawn.c"

uint64_t loop_now(void) { return 1; }
bool link_room(void) { return true; }
void link_send(uint8_t type, uint32_t stream, const void *payload, size_t length) {
  (void)type, (void)stream, (void)payload, (void)length;
}
void reply_failure(uint32_t stream, int kind, int err, const char *stage, const char *message) {
  (void)stream, (void)err;
  if (kind < KIND_BAD_REQUEST || kind > KIND_IO || strlen(stage) == 0 || strlen(message) > 4096) abort();
}
void reply_error(uint32_t stream, int kind, const char *stage, const char *message) {
  reply_failure(stream, kind, 0, stage, message);
}
void reply_errno(uint32_t stream, const char *stage, int err, const char *what) {
  reply_failure(stream, error_kind(err), err, stage, what);
}

/* Looks at every string, so that a bad one is found by the sanitizer. */
pid_t launch_process(struct launch *plan) {
  size_t total = strlen(plan->cwd);
  for (char **a = plan->argv; *a != NULL; a++) total += strlen(*a);
  for (char **e = plan->env; *e != NULL; e++) total += strchr(*e, '=') != NULL ? 1 : (abort(), 0);
  if (plan->argv[0] == NULL || plan->rlimit_count > LAUNCH_MAX_RLIMITS || total > 2 * WIRE_MAX_PAYLOAD) abort();
  plan->failed_stage = "exec";
  plan->failed_errno = total % 2 ? EACCES : ENOENT;
  return -1;
}

struct process *process_find(const char *id) {
  if (strlen(id) == 0 || strlen(id) > MAX_ID) abort();
  return NULL;
}
struct process *process_new(const char *id) {
  struct process *process = calloc(1, sizeof *process);
  if (process != NULL) strcpy(process->id, id);
  return process;
}
bool process_attach(struct process *process, uint32_t stream, uint64_t from) {
  (void)process, (void)stream, (void)from;
  return true;
}
void process_started(struct process *process, pid_t pid, uint64_t started_us, uint64_t timeout_us, uint64_t quiet_us) {
  (void)process, (void)pid, (void)started_us, (void)timeout_us, (void)quiet_us;
  abort();
}
void process_discard(struct process *process) { free(process); }
bool output_open(struct output *output, uint8_t channel, int fd) {
  (void)output, (void)channel;
  close(fd);
  return true;
}
void input_open(struct input *input, int fd, bool terminal) {
  (void)input, (void)terminal;
  close(fd);
}
bool pty_open(struct pty *pty, uint16_t cols, uint16_t rows, uid_t owner) {
  (void)pty, (void)owner;
  if (cols == 0 || rows == 0) abort();
  errno = ENOENT;
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > WIRE_MAX_PAYLOAD) return 0;
  struct wire_frame frame = {MSG_SPAWN, 1, data, (uint32_t)size};
  request_spawn(&frame);
  return 0;
}
