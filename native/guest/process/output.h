/*
 * output: what a process prints, from its pipes (or its terminal) to its reader.
 *
 * All bytes of both channels form one sequence in the order they were read. At most OUTPUT_BUFFER of them are
 * kept, from the first one not acknowledged on; while there are that many, the pipes are not read.
 *
 *     start ........... sent ........... end        offsets in the sequence
 *       | with the reader | to be sent    |
 */
#ifndef ISLET_OUTPUT_H
#define ISLET_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "link/loop.h"
#include "link/ring.h"

struct output_channel {
  struct loop_source source; /* fd -1: ended */
  uint8_t number;            /* 1 or 2, as in OUTPUT */
  size_t due;                /* bytes that lay in the pipe when the process exited and are not read yet */
};

/* Bytes up to `end` (and from the previous segment's end on) came through `channel`. */
struct output_segment {
  uint64_t end;
  uint8_t channel;
};

struct output {
  struct output_channel channel[2];
  struct ring ring;
  uint64_t sent;
  struct output_segment *segments;
  unsigned segment_count, segment_cap;
  struct loop_timer retry; /* memory was short: try again */
};

void output_init(struct output *output);
/* Reads fd, which must not block, as this channel from now on. False: the loop refuses it. */
bool output_open(struct output *output, uint8_t channel, int fd);

/* Sends at most one OUTPUT frame; true when there is more to send. */
bool output_send(struct output *output, uint32_t stream);
void output_ack(struct output *output, uint64_t offset);
/* Sends again from here; the offset must be within start and end. What is before it counts as acknowledged. */
void output_rewind(struct output *output, uint64_t from);

/* The process has exited: notes what is in the pipes now. */
void output_note_exit(struct output *output);
/* All channels are closed by their writers. */
bool output_ended(const struct output *output);
/* All that lay in the pipes at the exit has been read. */
bool output_caught_up(const struct output *output);
/* Leaves the open pipes to a sink that reads and discards, so that who writes to them is not killed. */
void output_abandon(struct output *output);
void output_free(struct output *output);

#endif
