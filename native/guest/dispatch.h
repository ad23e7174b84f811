/* dispatch: which part of the guest serves which message. */
#pragma once

#include "wire.h"

/* Handles one whole frame from the server. */
void dispatch_frame(const struct wire_frame *frame);
