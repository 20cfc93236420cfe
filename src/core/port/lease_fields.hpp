/// The fields of the rows, each under the name that every store gives it.
///
/// `visit_fields(row, f)` calls `f(name, member)` for each, in an order that never changes; for the
/// checkpoint, whose parts stand in three columns, `f(checkpoint_names, member)`. What names the row among
/// those of its kind comes as `f(key_field{name}, member)`. `f` reads a const row and fills another.
#pragma once

#include "port/lease_store.hpp"

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

namespace millrace {

struct key_field {
    std::string_view name;
};

/// The parts of a checkpoint: all there, or none.
struct checkpoint_field {
    std::string_view sequence;
    std::string_view sub_sequence;
    std::string_view arrival;
};
inline constexpr checkpoint_field checkpoint_names{"sequence", "sub_sequence", "arrival"};

/// By the value of `start_policy`.
inline constexpr std::array<std::string_view, 3> start_names{"trim_horizon", "latest", "at_timestamp"};

/// The name of the field that a write compares.
template <class Row>
inline constexpr std::string_view version_field = "version";
template <>
inline constexpr std::string_view version_field<worker_row> = "counter";

template <class Row, class F>
requires std::same_as<std::remove_const_t<Row>, group_row>
void visit_fields(Row& g, F&& f) {
    f("version", g.version);
    f("format", g.format);
    f("write_id", g.write_id);
    f("stream_identity", g.stream_identity);
    f("start", g.start);
    f("start_at", g.start_at);
    f("epoch_floor", g.epoch_floor);
}

template <class Row, class F>
requires std::same_as<std::remove_const_t<Row>, worker_row>
void visit_fields(Row& w, F&& f) {
    f(key_field{"incarnation"}, w.incarnation);
    f("counter", w.counter);
    f("worker", w.worker);
    f("write_id", w.write_id);
    f("lease_ns", w.lease);
    f("changes", w.changes);
    f("host", w.process.host);
    f("boot_id", w.process.boot_id);
    f("pid_namespace", w.process.pid_namespace);
    f("pid", w.process.pid);
    f("start_time", w.process.start_time);
    f("updated_at", w.updated_at);
}

template <class Row, class F>
requires std::same_as<std::remove_const_t<Row>, shard_row>
void visit_fields(Row& s, F&& f) {
    f(key_field{"shard"}, s.shard);
    f("version", s.version);
    f("parents", s.parents);
    f("owner", s.owner);
    f("epoch", s.epoch);
    f("write_id", s.write_id);
    f(checkpoint_names, s.checkpoint);
    f("finished_at", s.finished_at);
    f("updated_at", s.updated_at);
}

}  // namespace millrace
