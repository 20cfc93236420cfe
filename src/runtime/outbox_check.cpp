#include "outbox_check.hpp"

#include "schemas.hpp"

#ifdef MILLRACE_WITH_SCHEMAS

#include "adapters.hpp"
#include "event_loop.hpp"
#include "relay/lane.hpp"
#include "relay/poison.hpp"
#include "schema_adapters.hpp"

#include <memory>
#include <unordered_set>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds lease = std::chrono::seconds{10};

class checker {
public:
    checker(const outbox_check_settings& settings, log_sink& log) : settings_(settings), loop_(log) {}

    result<outbox_check_report> run() {
        auto opened = open_outbox(settings_.outbox, loop_, lease);
        if (!opened) return tl::unexpected(std::move(opened.error()));
        source_ = std::move(opened->source);
        auto coder = schema_adapters::open_coder(settings_.schemas, loop_, schema::registering::never);
        if (!coder) return tl::unexpected(std::move(coder.error()));
        coder_ = std::move(*coder);
        coder_->watch([this] { go_on(); });
        source_->start(alive_.guard([this](const result<outbox_start>& from) {
            if (!from) return end(from.error());
            for (const auto& key : from->parked)
                parked_.emplace(lane_ref(key));
            fetch();
        }));
        loop_.run();
        source_.reset();
        if (fault_) return tl::unexpected(std::move(*fault_));
        return std::move(report_);
    }

private:
    void end(std::optional<error> fault) {
        fault_ = std::move(fault);
        loop_.stop();
    }

    void fetch() {
        fetch_request request;
        request.after = after_;
        request.wants_writers = false;
        source_->fetch(request, alive_.guard([this](const result<fetch_reply>& reply) {
            if (!reply) return end(reply.error());
            batch_ = reply->ahead;
            next_ = 0;
            more_ = reply->more;
            if (batch_ && !batch_->rows().empty()) after_ = batch_->rows().back().id;
            if (reply->looked_to) after_ = std::max(after_, *reply->looked_to);
            // Asks for all that is missing at once.
            for (const auto& row : rows())
                (void)coder_->look(row);
            go_on();
        }));
    }

    [[nodiscard]] std::span<const outbox_row> rows() const {
        return batch_ ? batch_->rows() : std::span<const outbox_row>{};
    }

    void go_on() {
        while (next_ < rows().size()) {
            if (!check(rows()[next_])) return wait();
            ++next_;
            ++report_.rows;
        }
        if (batch_ && !more_) return end(std::nullopt);
        if (std::exchange(batch_, nullptr)) fetch();
    }

    /// The time is over for all: whoever could not be asked by then is not asked again and again.
    void wait() {
        if (waiting_) return;
        waiting_ = true;
        loop_.call_at(loop_.now() + settings_.wait, alive_.guard([this] {
            impatient_ = true;
            go_on();
        }));
    }

    /// False while its schema is awaited.
    [[nodiscard]] bool check(const outbox_row& row) {
        const lane_id lane{lane_ref(row)};
        if (!row.malformed.empty()) {
            convict(row, lane, "malformed_row", std::string(row.malformed));
        } else if (row.key && parked_.contains(lane)) {
            park(row, "lane_is_parked", "an earlier row of the same topic and key is parked, or would be");
        } else if (row.key && stopped_.contains(lane)) {
            ++report_.waiting;
            list(
                row,
                row_fate::waits,
                "relay_stops",
                "the relay would stop at an earlier row of the same topic and key"
            );
        } else {
            const auto state = coder_->look(row);
            if (state == schema::row_coder::state::untouched) return true;
            if (state == schema::row_coder::state::awaited && !impatient_) return false;
            row_batch memory;
            const auto coded = coder_->code(row, memory);
            if (coded) {
                ++report_.fit;
            } else {
                refuse(row, lane, coded.error());
            }
        }
        return true;
    }

    void refuse(const outbox_row& row, const lane_id& lane, const error& why) {
        if (judge(why, true) == blame::guilty)
            return convict(row, lane, std::string(bury_reason(why)), why.detail);
        ++report_.waiting;
        const auto* const trouble = coder_->source().trouble();
        const bool of_registry = why.code == errc::unavailable && trouble != nullptr;
        list(
            row,
            row_fate::waits,
            std::string(name_of(why.code)),
            of_registry ? trouble->why.detail : why.detail
        );
    }

    void convict(const outbox_row& row, const lane_id& lane, std::string reason, std::string detail) {
        if (settings_.on_poison == poison_policy::stop) {
            if (row.key) stopped_.insert(lane);
            ++report_.stopping;
            return list(row, row_fate::stops, std::move(reason), std::move(detail));
        }
        if (settings_.on_poison == poison_policy::park_key && row.key) parked_.insert(lane);
        park(row, std::move(reason), std::move(detail));
    }

    void park(const outbox_row& row, std::string reason, std::string detail) {
        ++report_.parked;
        list(row, row_fate::parked, std::move(reason), std::move(detail));
    }

    void list(const outbox_row& row, row_fate fate, std::string reason, std::string detail) {
        if (report_.first.size() >= settings_.listed_max) return;
        report_.first.push_back(
            {row.id,
             std::string(row.topic),
             row.key ? std::optional(std::string(*row.key)) : std::nullopt,
             fate,
             std::move(reason),
             std::move(detail)}
        );
    }

    const outbox_check_settings& settings_;
    event_loop loop_;
    std::unique_ptr<outbox_source> source_;
    std::shared_ptr<schema::row_coder> coder_;
    std::unordered_set<lane_id, lane_hash, lane_equal> parked_;
    std::unordered_set<lane_id, lane_hash, lane_equal> stopped_;
    row_id after_;
    std::shared_ptr<const row_batch> batch_;
    std::size_t next_{0};
    bool more_{false};
    bool waiting_{false};
    bool impatient_{false};
    outbox_check_report report_;
    std::optional<error> fault_;
    lifetime alive_;
};

}  // namespace

result<outbox_check_report> check_outbox(const outbox_check_settings& settings, log_sink& log) {
    return checker(settings, log).run();
}

}  // namespace millrace

#else

namespace millrace {

result<outbox_check_report> check_outbox(const outbox_check_settings& settings, log_sink&) {
    return tl::unexpected(settings.schemas.validate().error());
}

}  // namespace millrace

#endif
