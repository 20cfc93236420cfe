/// Who this process is, and whether another process of this machine has ended.
///
/// Reads /proc; thread-safe. Where something cannot be read its field stays empty, and then no process is
/// ever taken for gone.
#pragma once

#include "port/lease_store.hpp"

#include <millrace/names.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

[[nodiscard]] process_identity this_process();

/// True only when `which` ran on this boot of this machine, in this PID namespace, and has ended: its pid is
/// free or belongs to a process that started at another time. A zombie has ended.
[[nodiscard]] bool process_gone(const process_identity& which);

/// `host-pid-random`: unlike any other, and readable.
[[nodiscard]] worker_id default_worker_id(const process_identity& self, std::uint64_t random);

/// What /proc/PID/stat says: the state letter (field 3) and the start time (field 22). Nothing when the text
/// is not of that form. The command name may hold spaces and brackets.
struct process_stat {
    char state{'?'};
    std::uint64_t start_time{0};
};
[[nodiscard]] std::optional<process_stat> parse_process_stat(std::string_view text);

/// All that an open file of /proc says; empty when it cannot be read, as when its process has ended since.
[[nodiscard]] std::string read_proc_file(int fd);

}  // namespace millrace
