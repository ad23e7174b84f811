/*
 * task: senders take turns.
 *
 * Output, file data and events, everything longer than a short answer, are sent from tasks: the loop runs the queued
 * tasks one after the other while the link has room. A task sends about one frame and queues itself again, so no
 * stream starves another and the link's buffer stays bounded.
 */
#pragma once

#include <stdbool.h>

struct task {
  void (*run)(struct task *task);
  struct task *next, *back;
  bool queued;
};

void task_queue(struct task *task, void (*run)(struct task *task));
void task_cancel(struct task *task);
/* Runs the tasks queued now, each once, while the link has room. */
void task_turn(void);
bool task_waiting(void);
