#include "link/task.h"

#include <stddef.h>

#include "link/link.h"

static struct task *first, *last;
static unsigned count;

void task_queue(struct task *task, void (*run)(struct task *task)) {
  if (task->queued) return;
  task->run = run;
  task->queued = true;
  task->next = NULL;
  task->back = last;
  if (last != NULL) last->next = task;
  else first = task;
  last = task;
  count++;
}

void task_cancel(struct task *task) {
  if (!task->queued) return;
  task->queued = false;
  if (task->back != NULL) task->back->next = task->next;
  else first = task->next;
  if (task->next != NULL) task->next->back = task->back;
  else last = task->back;
  count--;
}

void task_turn(void) {
  for (unsigned turns = count; turns > 0 && first != NULL && link_room(); turns--) {
    struct task *task = first;
    task_cancel(task);
    task->run(task);
  }
}

bool task_waiting(void) {
  return first != NULL;
}
