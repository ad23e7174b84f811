/* dispatch: which part of the guest serves which message. */
#ifndef ISLET_DISPATCH_H
#define ISLET_DISPATCH_H

#include "wire.h"

/* Handles one whole frame from the server. */
void dispatch_frame(const struct wire_frame *frame);

#endif
