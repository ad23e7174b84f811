/* watch: serves WATCH: turns inotify events into EVENT frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/path.h"
#include "link/fields.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "link/stream.h"
#include "link/task.h"
#include "message.h"
#include "requests.h"
#include "watch/ignore.h"
#include "watch/queue.h"
#include "watch/tree.h"

enum {
  WATCH_READ = 16 * 1024,          /* bytes of kernel events taken at once */
  WATCH_READS = 8,                 /* times per turn */
  WATCH_SETTLE_US = 10 * 1000,     /* delay before sending, so that several events of one file become one */
  WATCH_EVENTS_PER_TURN = 128,
};

struct watching {
  struct stream stream;
  struct loop_source source;
  struct loop_timer scan;   /* continues the scan in the next turn */
  struct loop_timer settle; /* sends the events when it fires */
  struct task task;
  struct watch_ignore ignore;
  struct watch_tree tree;
  struct watch_queue queue;
  bool opened;              /* OPENED was sent */
  bool rebuilding;          /* the kernel's queue overflowed; reported once everything is watched again */
  bool gone;                /* the root is gone: send ERROR after the last event */
};

static void on_scan(struct loop_timer *timer);
static void on_settled(struct loop_timer *timer);
static void ready(struct loop_source *source, uint32_t events);
static void send_events(struct task *task);
static void on_cancel(struct stream *stream);

static const struct stream_ops ops = {.cancel = on_cancel};

static void release(struct watching *watching) {
  stream_close(&watching->stream);
  task_cancel(&watching->task);
  loop_timer_clear(&watching->scan);
  loop_timer_clear(&watching->settle);
  loop_wait(&watching->source, 0);
  watch_tree_free(&watching->tree);
  watch_queue_clear(&watching->queue);
  watch_ignore_free(&watching->ignore);
  free(watching);
}

static void fail(struct watching *watching, int err) {
  char path[PATH_MAX] = "";
  uint32_t stream = watching->stream.number;
  if (watching->tree.root != NULL) watch_tree_path(watching->tree.root, NULL, path);
  if (err == ENOSPC) reply_failure(stream, KIND_LIMIT, err, "watch", "too many directories: raise fs.inotify.max_user_watches");
  else if (err == EMFILE) reply_failure(stream, KIND_LIMIT, err, "watch", "too many watches: raise fs.inotify.max_user_instances");
  else reply_errno(stream, "watch", err, path);
  release(watching);
}

static bool start(struct watching *watching, const char *path, bool recursive, int *err) {
  *err = watch_tree_start(&watching->tree, path, recursive, &watching->ignore);
  if (*err != 0) return false;
  watching->source = (struct loop_source){.fd = watching->tree.inotify, .ready = ready};
  if (!loop_wait(&watching->source, EPOLLIN)) {
    *err = errno;
    return false;
  }
  loop_timer_set(&watching->scan, 0, on_scan);
  return true;
}

void request_watch(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint32_t recursive = 0;
  const struct fields_want want[] = {FIELDS_PATH(WATCH_path, path), FIELDS_U32(WATCH_recursive, &recursive)};
  if (!fields_read(req, want, 2)) return;
  path_strip_slashes(path);
  struct watching *watching = reply_calloc(req->stream, sizeof *watching);
  if (watching == NULL) return;
  watching->tree.inotify = watching->source.fd = -1;
  if (!watch_ignore_read(&watching->ignore, req) || !stream_open(&watching->stream, req->stream, &ops)) {
    watch_ignore_free(&watching->ignore);
    free(watching);
    return;
  }
  int err;
  if (!start(watching, path, recursive != 0, &err)) fail(watching, err);
}

static void found(void *arg, const char *path, bool directory) {
  struct watching *watching = arg;
  watch_queue_add(&watching->queue, EVENT_CREATED, path, directory);
}

/* Schedules sending if there is something to send. */
static void plan_sending(struct watching *watching) {
  if (watching->queue.first == NULL && !watching->queue.overflow && !watching->gone) return;
  if (!watching->settle.armed && !watching->task.queued) loop_timer_set(&watching->settle, WATCH_SETTLE_US, on_settled);
}

static void on_scan(struct loop_timer *timer) {
  struct watching *watching = container_of(timer, struct watching, scan);
  int more = watch_tree_step(&watching->tree, found, watching);
  if (more < 0) {
    fail(watching, -more);
    return;
  }
  if (more > 0) {
    loop_timer_set(timer, 0, on_scan);
  } else if (!watching->opened) {
    watching->opened = true;
    reply_opened(watching->stream.number);
  } else if (watching->rebuilding) {
    watching->rebuilding = false;
    watch_queue_overflow(&watching->queue);
  }
  plan_sending(watching);
}

/* The kernel lost events, maybe about new directories: start over. */
static void rebuild(struct watching *watching) {
  char path[PATH_MAX];
  bool recursive = watching->tree.recursive;
  int err = 0;
  if (watching->tree.root == NULL || !watch_tree_path(watching->tree.root, NULL, path)) return;
  loop_wait(&watching->source, 0);
  watch_tree_free(&watching->tree);
  watch_queue_clear(&watching->queue);
  watching->rebuilding = true;
  if (start(watching, path, recursive, &err)) return;
  /* The root may have gone with the lost events. */
  fail(watching, err);
}

static void take_root_event(struct watching *watching, const struct inotify_event *event) {
  char path[PATH_MAX];
  if (!watch_tree_path(watching->tree.root, NULL, path)) return;
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) watching->gone = true;
  /* If a watched file is unlinked or replaced while it is open, only its link count changes. */
  else if (event->mask & IN_ATTRIB && !watch_tree_root_stays(&watching->tree)) watching->gone = true;
  else if (event->mask & (IN_MODIFY | IN_ATTRIB)) watch_queue_add(&watching->queue, EVENT_CHANGED, path, event->mask & IN_ISDIR);
}

static int take_child_event(struct watching *watching, struct watch_node *node, const struct inotify_event *event) {
  bool directory = event->mask & IN_ISDIR;
  char path[PATH_MAX];
  if (watch_ignored(&watching->ignore, event->name) || !watch_tree_path(node, event->name, path)) return 0;
  if (!directory && path_is_temp(event->name)) return 0;
  if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
    bool known = watch_tree_know(&watching->tree, node, event->name);
    if (known && !directory && event->mask & IN_MOVED_TO) {
      watch_queue_add(&watching->queue, EVENT_CHANGED, path, false);
      return 0;
    }
    watch_queue_add(&watching->queue, EVENT_CREATED, path, directory);
    if (!directory || !watching->tree.recursive) return 0;
    int err = watch_tree_add(&watching->tree, node, event->name, true);
    if (err == 0) loop_timer_set(&watching->scan, 0, on_scan);
    return err;
  }
  if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
    watch_tree_forget(&watching->tree, node, event->name);
    watch_queue_add(&watching->queue, EVENT_REMOVED, path, directory);
    /* IN_IGNORED removes a deleted directory. A directory that moved away would keep sending events. */
    struct watch_node *child = directory && event->mask & IN_MOVED_FROM ? watch_tree_child(node, event->name) : NULL;
    if (child != NULL) watch_tree_remove(&watching->tree, child);
  } else if (event->mask & (IN_MODIFY | IN_ATTRIB)) {
    watch_queue_add(&watching->queue, EVENT_CHANGED, path, directory);
  }
  return 0;
}

/* False: the watch ended or starts over. */
static bool take_event(struct watching *watching, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) {
    rebuild(watching);
    return false;
  }
  struct watch_node *node = watch_tree_find(&watching->tree, event->wd);
  if (node == NULL) return true;
  int err = 0;
  if (event->len > 0) err = take_child_event(watching, node, event);
  else if (node == watching->tree.root) take_root_event(watching, event);
  else if (event->mask & IN_IGNORED) watch_tree_remove(&watching->tree, node);
  if (err == 0) return true;
  fail(watching, err);
  return false;
}

/* Reads the kernel's events; false if `watching` may have been freed. */
static bool drain(struct watching *watching) {
  char buffer[WATCH_READ] __attribute__((aligned(__alignof__(struct inotify_event))));
  for (int i = 0; i < WATCH_READS; i++) {
    ssize_t n = read(watching->tree.inotify, buffer, sizeof buffer);
    if (n <= 0) return true;
    for (char *at = buffer; at < buffer + n;) {
      const struct inotify_event *event = (const struct inotify_event *)at;
      at += sizeof *event + event->len;
      if (!take_event(watching, event)) return false;
    }
  }
  return true;
}

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  struct watching *watching = container_of(source, struct watching, source);
  if (drain(watching)) plan_sending(watching);
}

static void on_settled(struct loop_timer *timer) {
  struct watching *watching = container_of(timer, struct watching, settle);
  if (!watching->opened || watching->rebuilding) return; /* the end of the scan schedules sending again */
  /* A scan's findings are in the kernel's queue as well; read now, they merge with the waiting events. */
  if (drain(watching)) task_queue(&watching->task, send_events);
}

static void send_event(uint32_t stream, uint8_t kind, const char *path, bool directory) {
  uint8_t *payload = link_reserve(PATH_MAX + 64);
  struct wire_out out = {payload, 0, PATH_MAX + 64, false};
  wire_put_u32(&out, EVENT_kind, kind);
  wire_put_str(&out, EVENT_path, path);
  wire_put_u32(&out, EVENT_directory, directory);
  link_commit(MSG_EVENT, stream, out.len);
}

static void send_events(struct task *task) {
  struct watching *watching = container_of(task, struct watching, task);
  uint32_t stream = watching->stream.number;
  char root[PATH_MAX] = "";
  if (watching->tree.root != NULL) watch_tree_path(watching->tree.root, NULL, root);
  if (watching->rebuilding) return;
  if (watching->queue.overflow) send_event(stream, EVENT_OVERFLOW, root, true);
  watching->queue.overflow = false;
  for (int i = 0; i < WATCH_EVENTS_PER_TURN && watching->queue.first != NULL && link_room(); i++) {
    struct watch_event *event = watch_queue_take(&watching->queue);
    send_event(stream, event->kind, event->path, event->directory);
    free(event);
  }
  if (watching->queue.first != NULL) {
    task_queue(task, send_events);
  } else if (watching->gone) {
    reply_error(stream, KIND_NOT_FOUND, "watch", "the watched path is gone");
    release(watching);
  }
}

static void on_cancel(struct stream *stream) {
  release(container_of(stream, struct watching, stream));
}
