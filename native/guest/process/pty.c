#include "process/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_slave(int master) {
  int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  int slave = ioctl(master, TIOCGPTPEER, flags);
  if (slave >= 0) return slave;
  /* gVisor and kernels before 4.13 have no TIOCGPTPEER. */
  unsigned number;
  char path[32];
  if (ioctl(master, TIOCGPTN, &number) < 0) return -1;
  snprintf(path, sizeof path, "/dev/pts/%u", number);
  return open(path, flags);
}

bool pty_open(struct pty *pty, uint16_t cols, uint16_t rows, uid_t owner) {
  int unlocked = 0;
  pty->slave = -1;
  pty->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (pty->master < 0) return false;
  if (ioctl(pty->master, TIOCSPTLCK, &unlocked) == 0 && (pty->slave = open_slave(pty->master)) >= 0 &&
      pty_resize(pty->master, cols, rows)) {
    /* Lets the user open the terminal by name. If it fails, the terminal still works. */
    if (fchown(pty->slave, owner, (gid_t)-1) < 0 || fchmod(pty->slave, 0620) < 0) {}
    return true;
  }
  int err = errno;
  if (pty->slave >= 0) close(pty->slave);
  close(pty->master);
  errno = err;
  return false;
}

bool pty_resize(int master, uint16_t cols, uint16_t rows) {
  struct winsize size = {.ws_col = cols, .ws_row = rows};
  return ioctl(master, TIOCSWINSZ, &size) == 0;
}
