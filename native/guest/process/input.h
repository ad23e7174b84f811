/*
 * input: stdin of a process, from the server to its pipe or terminal.
 *
 * ring.start counts the bytes written to the process's pipe, ring.end the bytes received. STDIN_WINDOW allows the server
 * to send up to ring.start + STDIN_BUFFER, so a program that does not read costs at most that much memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/loop.h"
#include "link/ring.h"

struct input {
  struct loop_source source; /* fd -1: no stdin, or the program closed it; bytes are discarded */
  struct ring ring;
  uint64_t announced; /* the limit in the last STDIN_WINDOW */
  bool terminal;
  bool ended;         /* STDIN_END came */
};

enum input_result { INPUT_TAKEN, INPUT_GAP, INPUT_PAST_WINDOW, INPUT_NO_MEMORY };

void input_init(struct input *input);
/* Takes over the fd, which must be non-blocking. */
void input_open(struct input *input, int fd, bool terminal);
enum input_result input_take(struct input *input, uint64_t offset, const uint8_t *bytes, size_t length);
/* After all bytes are written, closes the pipe or types Ctrl-D on the terminal. */
void input_end(struct input *input);
/* Sends STDIN_WINDOW with the current limit. */
void input_announce(struct input *input, uint32_t stream);
void input_close(struct input *input);
