#include <millrace/error.hpp>
#include <millrace/log.hpp>

namespace millrace {

std::string_view name_of(errc code) noexcept {
    switch (code) {
        case errc::invalid_argument:
            return "invalid_argument";
        case errc::invalid_config:
            return "invalid_config";
        case errc::not_found:
            return "not_found";
        case errc::already_exists:
            return "already_exists";
        case errc::conflict:
            return "conflict";
        case errc::not_owner:
            return "not_owner";
        case errc::already_released:
            return "already_released";
        case errc::already_finished:
            return "already_finished";
        case errc::worker_id_taken:
            return "worker_id_taken";
        case errc::expired_cursor:
            return "expired_cursor";
        case errc::position_trimmed:
            return "position_trimmed";
        case errc::throttled:
            return "throttled";
        case errc::unavailable:
            return "unavailable";
        case errc::permission_denied:
            return "permission_denied";
        case errc::out_of_space:
            return "out_of_space";
        case errc::corrupt:
            return "corrupt";
        case errc::wrong_version:
            return "wrong_version";
        case errc::refused_record:
            return "refused_record";
        case errc::refused_topic:
            return "refused_topic";
        case errc::purged:
            return "purged";
        case errc::cancelled:
            return "cancelled";
        case errc::handler_failed:
            return "handler_failed";
        case errc::internal:
            return "internal";
    }
    return "internal";
}

log_sink& null_log() noexcept {
    class nothing final : public log_sink {
        [[nodiscard]] bool enabled(log_level) const noexcept override { return false; }
        void write(log_level, std::string_view, std::initializer_list<log_field>) override {}
    };
    static nothing sink;
    return sink;
}

}  // namespace millrace
