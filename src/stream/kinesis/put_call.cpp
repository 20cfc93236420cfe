#include "put_call.hpp"

#include "client/classify.hpp"
#include "kinesis_error.hpp"
#include "put_entry.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

using namespace aws::kinesis;
using verdict = put_queue::verdict;

constexpr int too_large_status = 413;

put_answer all(std::size_t rows, verdict is, const error& why, bool shared_blame = false) {
    return {std::vector<put_queue::outcome>(rows, {is, why}), shared_blame};
}

/// What a failed call says of its rows.
put_answer answer_of(const aws::api_failure& what, const kinesis_address& to, std::size_t rows) {
    auto why = of_stream(what, to);
    if (why.in_doubt) return all(rows, verdict::failed, why);
    if (why.code == errc::throttled) return all(rows, verdict::busy, why);
    const bool of_this_stream = what.type.starts_with("ResourceNotFound") ||
                                what.type.starts_with("AccessDenied") || what.type.starts_with("KMS");
    if (of_this_stream) {
        why.code = errc::refused_topic;
        why.retry = retry_advice::after_delay;
        return all(rows, verdict::failed, why);
    }
    if (what.type.starts_with("InvalidArgument") || what.type.starts_with("Validation")) {
        why.code = errc::refused_record;
        why.retry = retry_advice::never;
        return all(rows, verdict::failed, why, rows > 1);
    }
    why.retry = retry_advice::after_delay;
    if (what.status == too_large_status && what.type.empty()) {
        why.code =
            rows > 1 ? errc::unavailable : errc::refused_record;  // which may mend: it is a proxy's limit
        return all(rows, rows > 1 ? verdict::too_large : verdict::failed, why);
    }
    // All else is no word about a record: another service, a gateway or a proxy may have answered.
    if (why.code == errc::invalid_argument) why.code = errc::unavailable;
    return all(rows, verdict::failed, why);
}

error of_row(const put_failure& failure, const kinesis_address& to) {
    const bool throttled = failure.code->starts_with("ProvisionedThroughputExceeded") ||
                           failure.code->starts_with("KMSThrottling");
    return {
        throttled ? errc::throttled : errc::unavailable,
        retry_advice::after_delay,
        false,
        fmt::format(
            "{}: a record was not put: {}: {}",
            shown(to),
            aws::shown_message(*failure.code),
            aws::shown_message(failure.message.value_or(""))
        )};
}

put_answer answer_of(
    const kinesis_outcome<kinesis_reply>& came, const kinesis_address& to, std::size_t rows
) {
    if (!came) return answer_of(came.error(), to, rows);
    auto reply = decode<put_failures_reply>(came->body, came->format);
    if (!reply || reply->results.size() != rows) {
        auto why = reply ? error{errc::unavailable, {}, false, "it has not one outcome for each record"}
                         : reply.error();
        why = kinesis_calls::garbled(put_records::operation, std::move(why)).why;
        why.retry = retry_advice::after_delay;
        why.in_doubt = true;
        return all(rows, verdict::failed, why);
    }
    put_answer answer;
    answer.rows.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        if (reply->results[i].code) answer.rows[i] = {verdict::busy, of_row(reply->results[i], to)};
    }
    return answer;
}

}  // namespace

void send_put(
    kinesis_calls& calls,
    const kinesis_address& to,
    const std::shared_ptr<const put_queue::call>& what,
    std::uint64_t random,
    milliseconds timeout,
    std::function<void(put_answer)> done
) {
    const auto rooms = std::make_shared<std::vector<std::string>>(what->items.size());
    put_records request{to.wire_name(), {}};
    request.records.reserve(what->items.size());
    for (std::size_t i = 0; i < what->items.size(); ++i)
        request.records.push_back(
            entry_of(*what->items[i].row.row, random + i * 0x9e3779b97f4a7c15U, (*rooms)[i])
        );
    calls.send(
        std::move(request),
        {.repeatable = false, .wait_when_throttled = false, .timeout = timeout},
        [to, what, rooms, done = std::move(done)](const kinesis_outcome<kinesis_reply>& came) {
            done(answer_of(came, to, what->items.size()));
        }
    );
}

}  // namespace millrace
