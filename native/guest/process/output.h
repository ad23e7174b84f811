/*
 * output: what a process prints, from its pipes (or its terminal) to its reader.
 *
 * The bytes of both channels form one sequence, in the order they were read. Bytes are kept until they are acknowledged.
 * While OUTPUT_BUFFER bytes are kept, the pipes are not read.
 *
 *     start ........... sent ........... end        offsets in the sequence
 *       | not acknowledged| not sent yet  |
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "link/loop.h"
#include "link/ring.h"

struct output_channel {
  struct loop_source source; /* fd -1: ended */
  uint8_t number;            /* 1 or 2, as in OUTPUT */
  size_t due;                /* unread bytes that were in the pipe when the process exited */
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
/* Reads the non-blocking fd as this channel from now on. False: epoll refused it. */
bool output_open(struct output *output, uint8_t channel, int fd);

/* Sends at most one OUTPUT frame; true when there is more to send. */
bool output_send(struct output *output, uint32_t stream);
void output_ack(struct output *output, uint64_t offset);
/* Sends again from this offset, which must be within start and end. Earlier bytes count as acknowledged. */
void output_rewind(struct output *output, uint64_t from);

/* The process has exited: notes how many bytes are in the pipes. */
void output_note_exit(struct output *output);
/* Whether the writers of all channels have closed them. */
bool output_ended(const struct output *output);
/* Whether everything that was in the pipes at the exit has been read. */
bool output_caught_up(const struct output *output);
/* Hands open pipes to a sink that discards their bytes, so that remaining writers do not get SIGPIPE. */
void output_abandon(struct output *output);
void output_free(struct output *output);
