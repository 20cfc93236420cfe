/// A sink that encodes and frames what goes to another one, by the rules of a `row_coder`.
///
/// A row whose schema is not known awaits it; until then only its lane is held back. What does not fit its
/// schema is refused by itself: of the rows handed over with it, those of its lane are purged and the others
/// go on. Belongs to the host's thread; encoding is done there, a request at a time.
#pragma once

#include "port/event_sink.hpp"
#include "port/host.hpp"
#include "row_coder.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace millrace::schema {

struct schema_sink_options {
    /// Encoded bytes that the inner sink may hold; a value may be far larger than its text. One request is
    /// always let through.
    std::size_t coded_bytes_max{std::size_t{64} << 20};

    /// A reset waits so long for what was handed over before it resets the inner sink.
    nanoseconds settle_limit{std::chrono::milliseconds{500}};
};

struct schema_sink_counters {
    std::uint64_t coded{0};    ///< Rows that were encoded or framed.
    std::uint64_t refused{0};  ///< Rows that do not fit, each time.
};

class schema_sink final : public event_sink {
public:
    /// The coder may be shared by several sinks.
    schema_sink(
        host& home,
        std::unique_ptr<event_sink> inner,
        std::shared_ptr<row_coder> coder,
        schema_sink_options options = {}
    );
    ~schema_sink() override;

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override;
    void reset_main(completion<void> done) override;
    void purge(completion<void> done) override;
    void wind_down() override { inner_->wind_down(); }
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override;
    [[nodiscard]] bool awaits(const outbox_row& row) const override;
    void watch(std::function<void()> changed) override;
    [[nodiscard]] std::optional<error> trouble() const override { return inner_->trouble(); }
    [[nodiscard]] capacity limits() const override { return inner_->limits(); }

    [[nodiscard]] const schema_sink_counters& counters() const noexcept { return counters_; }

private:
    struct coded_request;

    [[nodiscard]] coded_request code(channel where, const std::vector<outgoing_row>& rows);
    void hand_over(channel where, coded_request what, epoch mine, completion<publish_outcome> done);
    void ended(channel where, std::size_t bytes, const result<publish_outcome>& outcome);
    void reset_inner();
    void finish_resets(const result<void>& outcome);
    void tell(completion<publish_outcome> done, publish_outcome outcome);

    host& home_;
    std::shared_ptr<row_coder> coder_;
    const schema_sink_options options_;
    schema_sink_counters counters_;
    std::size_t coded_bytes_{0};
    std::size_t on_main_{0};     ///< Requests that the inner main holds.
    bool stopped_{false};        ///< A row was refused here: nothing goes out on main until the reset.
    bool inner_stopped_{false};  ///< The inner main must be reset.
    bool resetting_inner_{false};
    std::vector<completion<void>> resets_;
    std::optional<host::timer> give_up_;
    lifetime alive_;
    std::unique_ptr<event_sink> inner_;
};

}  // namespace millrace::schema
