// The fields of each message of messages.h, listed once for encoder and decoder, as in
// csrc/wire/codec_fields.h.
//
// NEW_RANK_FIELD: a field that is added to host::RankReport gets one line in its list here, as a
// newer_...(), and a bound in host::bounded() if rows add it up.
#pragma once

#include "csrc/arbiter/messages.h"
#include "csrc/wire/codec_fields.h"

namespace gpushare::arbiter {

using wire::codec::Ref;

template <typename V>
void list_fields(V& v, Ref<V, Challenge> m) {
  v.field("protocol", m.protocol);
  v.field("nonce", m.nonce);
}

template <typename V>
void list_fields(V& v, Ref<V, Proof> m) {
  v.field("protocol", m.protocol);
  v.field("nonce", m.nonce);
  v.field("proof", m.proof);
}

template <typename V>
void list_fields(V& v, Ref<V, Welcome> m) {
  v.field("proof", m.proof);
}

template <typename V>
void list_fields(V& v, Ref<V, Refused> m) {
  v.text("reason", m.reason);
}

template <typename V>
void list_fields(V& v, Ref<V, Join> m) {
  v.field("version", m.version);
  v.field("host", m.host);
  v.field("place", m.place);
  v.field("instance", m.instance);
  v.text("devices", m.devices);
  v.field("seen_epoch", m.seen_epoch);
}

// These fields stand among those of the message around them. So no field of Rank or Singles may
// have one of these names, and the iteration is called the usual one.
template <typename V>
void list_contender(V& v, Ref<V, Contender> c) {
  v.field("priority", c.priority);
  v.weight(c.weight);
  v.field("setback", c.setback);
  v.field("deadline_ns", c.deadline);
  v.field("served_ns", c.served);
  v.field("iterations_to_go", c.iterations_to_go);
  v.field("usual_iteration_ns", c.iteration);
}

template <typename V>
void list_fields(V& v, Ref<V, Rank> m) {
  v.field("uid", m.report.gang.first);
  v.field("gang", m.report.gang.second);
  v.field("job", m.report.job);
  v.ranks(m.number, m.report.ranks);
  v.field("device", m.report.device);
  v.field("is_known", m.report.is_known);
  v.field("steps", m.report.steps);
  v.field("stop_at", m.report.stop_at);
  v.field("wants", m.report.wants);
  v.field("has_lease", m.report.has_lease);
  v.field("is_in_gap", m.report.is_in_gap);
  v.field("is_held_back", m.report.is_held_back);
  v.field("iteration_ns", m.report.iteration);
  v.field("switching_ns", m.report.switching);
  v.field("gap_ns", m.report.gap);
  list_contender(v, m.contender);
}

template <typename V>
void list_fields(V& v, Ref<V, Gone> m) {
  v.field("job", m.job);
}

template <typename V>
void list_fields(V& v, Ref<V, Singles> m) {
  v.field("device", m.device);
  v.text("weights", m.weights);
  v.field("has_lease", m.has_lease);
  v.field("is_in_line", m.is_in_line);
  v.field("first", m.first);
  list_contender(v, m.contender);
}

template <typename V>
void list_fields(V& v, Ref<V, Look> m) {
  v.field("round", m.round);
}

template <typename V>
void list_fields(V& v, Ref<V, Looked> m) {
  v.field("round", m.round);
}

template <typename V>
void list_fields(V& v, Ref<V, Order> m) {
  v.field("epoch", m.epoch);
  v.field("job", m.order.job);
  v.field("is_free", m.order.is_free);
  v.field("is_open", m.order.is_open);
  v.field("stop_at", m.order.stop_at);
  v.text("why", m.order.why);
}

}  // namespace gpushare::arbiter
