/* dispatch: which function serves a request, and in which class of workers. */
#pragma once

#include "request.h"

/* Each class except INLINE has its own workers and its own queue, so that a slow clone never delays a bind. */
enum job_class { JOB_INLINE, JOB_BIND, JOB_CONTROL, JOB_TREE, JOB_START, JOB_CLASSES };

enum job_class dispatch_class(uint8_t code);
int dispatch(const struct request *request, struct wire_out *ok, struct fail *fail);
