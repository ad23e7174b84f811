#include "dispatch.h"

#include "cell/bind.h"
#include "cell/runsc.h"
#include "cell/runtime.h"
#include "cgroup/cgroup.h"
#include "layer/layer.h"
#include "net/net.h"

enum job_class dispatch_class(uint8_t code) {
  switch (code) {
    case MSG_BIND:
    case MSG_LAYER_CREATE:
      return JOB_BIND;
    case MSG_LAYER_SYNC:
    case MSG_CGROUP_FREEZE:
    case MSG_CGROUP_KILL:
    case MSG_CGROUP_DELETE:
    case MSG_CGROUP_RECLAIM:
    case MSG_CELL_PAUSE:
    case MSG_CELL_NETWORK:
    case MSG_VETH_DELETE:
      return JOB_CONTROL;
    case MSG_LAYER_CLONE: /* a snapshot is short, and its source is frozen meanwhile */
      return warden.method == CLONE_BY_BTRFS ? JOB_CONTROL : JOB_TREE;
    case MSG_LAYER_DELETE:
    case MSG_LAYER_USAGE:
    case MSG_LAYER_FLATTEN:
      return JOB_TREE;
    case MSG_CELL_START:
    case MSG_CELL_RUN:
    case MSG_CELL_SAVE:
    case MSG_CELL_SETTLE:
      return JOB_START;
    default:
      return JOB_INLINE;
  }
}

static int hello(struct wire_out *ok) {
  wire_put_str(ok, TAG_OK_method, layer_method_name(warden.method));
  wire_put_u32(ok, TAG_OK_quota, warden.quota);
  return 0;
}

int dispatch(const struct request *r, struct wire_out *ok, struct fail *fail) {
  switch (r->code) {
    case MSG_HELLO: return hello(ok);
    case MSG_LAYER_CREATE: return layer_create(r->name, r->limit_bytes, fail);
    case MSG_LAYER_CLONE: return layer_clone(r, ok, fail);
    case MSG_LAYER_DELETE: return layer_delete(r->name, fail);
    case MSG_LAYER_LIMIT: return layer_limit(r->name, r->limit_bytes, fail);
    case MSG_LAYER_USAGE: return layer_usage(r->name, ok, fail);
    case MSG_LAYER_LIST: return layer_list(ok, fail);
    case MSG_LAYER_FLATTEN: return layer_flatten(r, fail);
    case MSG_LAYER_SYNC: return layer_sync(fail);
    case MSG_BIND: {
      uint64_t began = now_us();
      bool etc = false;
      int result = bind_cell(&r->bind, &etc, fail);
      wire_put_u64(ok, TAG_OK_duration_us, now_us() - began);
      wire_put_u32(ok, TAG_OK_etc, etc);
      return result;
    }
    case MSG_CELL_START: return runtime_start(r, fail);
    case MSG_CELL_RUN: return runsc_run(r, fail);
    case MSG_CELL_PAUSE: return runsc_pause(r->name, r->flag, fail);
    case MSG_CELL_SETTLE: return runsc_settle(r, fail);
    case MSG_CELL_SAVE: return runsc_save(r->name, fail);
    case MSG_CELL_NETWORK: return net_switch(r, fail);
    case MSG_CGROUP_LIMIT: return cgroup_limit(r->name, &r->limits, fail);
    case MSG_CGROUP_CEILING: return cgroup_ceiling(&r->limits, fail);
    case MSG_CGROUP_YIELD:
      cgroup_choose_victim();
      return cgroup_yield(fail);
    case MSG_CGROUP_FREEZE: return cgroup_freeze(r->name, r->flag, fail);
    case MSG_CGROUP_STAT: return cgroup_stat(r->name, ok, fail);
    case MSG_CGROUP_KILL: return cgroup_kill(r->name, fail);
    case MSG_CGROUP_DELETE: return cgroup_delete(r->name, fail);
    case MSG_CGROUP_RECLAIM: return cgroup_reclaim(r->name, fail);
    case MSG_CGROUP_LIST: return cgroup_list(ok, fail);
    case MSG_BRIDGE_CREATE: return net_bridge_create(r->network.address, r->network.prefix, fail);
    case MSG_BRIDGE_DELETE: return net_bridge_delete(fail);
    case MSG_VETH_DELETE: return net_veth_delete(r->network.veth, r->network.address, fail);
    case MSG_VETH_LIST: return net_veth_list(ok, fail);
    default: return fail_kind(fail, KIND_BAD_REQUEST, "request", "there is no such request");
  }
}
