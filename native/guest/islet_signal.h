/*
 * islet_signal: the command `islet-signal`, with which a program in a sandbox sends a signal to listeners outside.
 *
 *     islet-signal port 3000 open http://localhost:3000
 *     islet-signal port 3000 close http://localhost:3000
 *     islet-signal server-ready 3000 http://localhost:3000
 *     islet-signal error MESSAGE...
 *     islet-signal NAME [JSON]
 *
 * It posts to the server's socket beside itself, inside.sock. Exit code: 0 accepted, 1 refused or not reached, 2 usage.
 */
#pragma once

int islet_signal(int argc, char **argv);
