/* io: small helpers over file descriptors that the guest and the warden share. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* For `cleanup` attributes: they close what is open and keep errno. */
void close_fd(int *fd);
void close_dir(DIR **dir);
void close_file(FILE **file);
#define AUTO_CLOSE __attribute__((cleanup(close_fd)))
#define AUTO_CLOSE_DIR __attribute__((cleanup(close_dir)))
#define AUTO_CLOSE_FILE __attribute__((cleanup(close_file)))

/* Writes all bytes to a blocking fd; false with errno. */
bool io_write_all(int fd, const void *bytes, size_t length);
/* Reads a small file (of /proc, a cgroup ...) with one read, adds a NUL and closes the fd. The length, or -1 with errno. */
ssize_t io_take_text(int fd, char *text, size_t size);
/* fdopendir, and fdopen to read, that close the fd when they fail. A negative fd gives NULL and keeps errno. */
DIR *io_take_dir(int fd);
FILE *io_take_file(int fd);
/* The next entry other than "." and ".."; NULL at the end (errno is 0 then), on an error, and if dir is NULL. */
struct dirent *io_next_entry(DIR *dir);
/* Copies the first `size` bytes of a file into an empty one and keeps its holes. A file that shrinks meanwhile is no error. 0, or -1 with errno. */
int io_copy_data(int from, int to, off_t size);
