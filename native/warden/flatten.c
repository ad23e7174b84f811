#include "layer.h"
int layer_flatten(const struct request *request, struct fail *fail) {
  (void)request;
  return fail_kind(fail, KIND_UNSUPPORTED, "flatten", "not yet");
}
