// The fields of each message on the wire, with their names and bounds, listed once.
//
// Which problem it solves: encoder and decoder are both visitors of the same list, so a field
// cannot be written and not read. How used: `list_fields(visitor, message)`; the visitor is an
// Encoder (codec_encode.cpp) or a Decoder (codec_decode.cpp). A message that a socket may not carry
// has no list.
//
// A visitor has field(name, value) for each type of value: numbers, bool, Bytes, Nanos, JobId,
// Term, Priority, and std::string, which is at most kMaxNameBytes long; a std::optional without a
// value is absent. Beside it: newer_field() for one that an older peer does not send, text() for
// prose of at most kMaxTextBytes, document() for a string that only the message's length bounds,
// weight(), newer_share() for a part of 1, ranks(), whose two values belong together, and slots()
// for numbers of a lane's slots.
//
// The order of the lines is the order in which a log shows the fields; a decoder does not depend on
// it. A name keeps its meaning for good, since peers of two versions speak with each other: a field
// that comes to mean something else gets another name, and one that is added later is a
// newer_...().
#pragma once

#include "csrc/wire/messages.h"

namespace gpushare::wire::codec {

// const T& for the encoder, T& for the decoder.
template <typename Visitor, typename T>
using Ref = typename Visitor::template Ref<T>;

template <typename V>
void list_fields(V& v, Ref<V, Address> a) {
  v.field("job", a.job);
  v.field("device", a.device);
  v.field("gang", a.gang);
  v.ranks(a.rank, a.ranks);
}

template <typename V>
void list_fields(V& v, Ref<V, Hello> m) {
  v.field("protocol", m.protocol);
  v.field("version", m.version);
  v.text("command", m.command);
  v.field("pid", m.pid);
  v.field("uid", m.uid);
  list_fields(v, m.of);
  v.field("resident_bytes", m.resident);
  v.field("spilled_bytes", m.spilled);
  v.field("spilled_file_bytes", m.spilled_file);
  v.field("held_term", m.held_term);
  v.field("lane_epoch", m.lane_epoch);
  v.slots("lane_slots", m.lane_slots);
  v.field("device_total_bytes", m.device_total);
  v.field("device_free_bytes", m.device_free);
  v.field("device_piece_bytes", m.device_piece);
  v.newer_field("program", m.program);
}

// NEW_SETTING: one line here. An older peer does not send it, so it is a newer_...().
template <typename V>
void list_fields(V& v, Ref<V, JobSettings> s) {
  v.field("priority", s.priority);
  v.weight(s.weight);
  v.field("memory_limit_bytes", s.memory_limit);
  v.newer_field("deadline_ns", s.deadline);
  v.newer_share("share_limit", s.share_limit);
  v.newer_field("is_elastic", s.is_elastic);
  v.field("iterations_total", s.iterations_total);
}

template <typename V>
void list_fields(V& v, Ref<V, Register> m) {
  list_fields(v, m.of);
  v.field("name", m.name);
  v.field("group", m.group);
  list_fields(v, m.settings);
  v.field("paused_by_uid", m.paused_by);
  v.field("iterations_done", m.iterations_done);
  v.newer_field("fingerprint", m.fingerprint);
  v.newer_field("stop_at", m.stop_at);
  v.newer_text("arbiter", m.arbiter);
}

// Only what is to be changed is there, so each field may be absent.
template <typename V>
void list_fields(V& v, Ref<V, Changes> c) {
  v.field("priority", c.priority);
  v.weight(c.weight);
  v.field("memory_limit_bytes", c.memory_limit);
  v.field("deadline_ns", c.deadline);
  v.newer_share("share_limit", c.share_limit);
  v.field("is_elastic", c.is_elastic);
  v.field("is_paused", c.is_paused);
}

template <typename V>
void list_fields(V& v, Ref<V, Unregister> m) {
  list_fields(v, m.of);
}

template <typename V>
void list_fields(V& v, Ref<V, Need> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.field("need_bytes", m.bytes);
  v.field("like_bytes", m.like);
  v.field("only_free", m.only_free);
  v.field("room_bytes", m.room);
}

template <typename V>
void list_fields(V& v, Ref<V, Released> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.field("released_bytes", m.bytes);
  v.field("dropped_bytes", m.dropped);
  v.field("spilled_bytes", m.spilled);
  v.field("spilled_file_bytes", m.spilled_file);
  v.field("spilled_late_bytes", m.spilled_late);
  v.field("unplaced_bytes", m.unplaced);
  v.field("more", m.more);
  v.field("with_lease", m.with_lease);
  v.newer_field("need_n", m.need_n);
  v.field("held", m.held);
  v.text("reason", m.reason);
}

template <typename V>
void list_fields(V& v, Ref<V, Consumed> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
}

template <typename V>
void list_fields(V& v, Ref<V, LaneChanged> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.field("given_bytes", m.given);
  v.field("num_chunks", m.num_chunks);
  v.slots("donated", m.donated);
  v.slots("returned", m.returned);
}

template <typename V>
void list_fields(V& v, Ref<V, Explain> m) {
  list_fields(v, m.of);
}

template <typename V>
void list_fields(V& v, Ref<V, StatusRequest> m) {
  v.field("why", m.why);
}

template <typename V>
void list_fields(V& v, Ref<V, Set> m) {
  v.field("job", m.job);
  list_fields(v, m.changes);
}

template <typename V>
void list_fields(V& v, Ref<V, SetPolicy> m) {
  v.field("policy", m.policy);
}

template <typename V>
void list_fields(V& v, Ref<V, Place> m) {
  v.text("devices", m.devices);
  v.newer_text("used_bytes", m.used_bytes);
}

template <typename V>
void list_fields(V& v, Ref<V, Stop> m) {
  v.field("force", m.force);
}

template <typename V>
void list_fields(V& v, Ref<V, Welcome> m) {
  v.field("protocol", m.protocol);
  v.field("epoch", m.epoch);
  list_fields(v, m.of);
  v.field("capacity_bytes", m.capacity);
  v.field("room_bytes", m.room);
  v.text("spill_dir", m.spill_dir);
  v.field("host_ram_budget_bytes", m.host_ram_budget);
  v.field("host_file_budget_bytes", m.host_file_budget);
  v.field("memory_wait_ns", m.memory_wait);
}

template <typename V>
void list_fields(V& v, Ref<V, Registered> m) {
  list_fields(v, m.of);
  v.newer_text("note", m.note);
}

template <typename V>
void list_fields(V& v, Ref<V, Grant> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.field("need_n", m.need_n);
  v.field("room_bytes", m.room);
  v.field("lane_n", m.lane_n);
}

template <typename V>
void list_fields(V& v, Ref<V, LaneTable> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.slots("slots", m.slots);
}

template <typename V>
void list_fields(V& v, Ref<V, Revoke> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.field("revoke_bytes", m.bytes);
  v.field("most_ram_bytes", m.most_ram);
  v.field("most_file_bytes", m.most_file);
}

template <typename V>
void list_fields(V& v, Ref<V, Denied> m) {
  list_fields(v, m.of);
  v.field("n", m.n);
  v.text("reason", m.reason);
}

template <typename V>
void list_fields(V& v, Ref<V, Close> m) {
  list_fields(v, m.of);
  v.field("term", m.term);
}

template <typename V>
void list_fields(V& v, Ref<V, Changed> m) {
  list_fields(v, m.of);
  list_fields(v, m.changes);
  v.newer_field("by_uid", m.by);
}

template <typename V>
void list_fields(V& v, Ref<V, Explained> m) {
  list_fields(v, m.of);
  v.text("text", m.text);
}

template <typename V>
void list_fields(V& v, Ref<V, Refused> m) {
  v.text("reason", m.reason);
}

// The report is JSON inside a string: whoever asked parses it, and the codec need not know it.
template <typename V>
void list_fields(V& v, Ref<V, StatusReport> m) {
  v.document("report", m.report);
}

template <typename V>
void list_fields(V& v, Ref<V, Placed> m) {
  v.field("device", m.device);
}

// Whether a socket may carry this message.
template <typename Visitor, typename T>
concept HasFields = requires(Visitor& v, Ref<Visitor, T> message) { list_fields(v, message); };

}  // namespace gpushare::wire::codec
