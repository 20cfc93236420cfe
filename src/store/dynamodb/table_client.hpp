/// Requests to DynamoDB whose outcomes come back on the host.
///
/// Replies are decoded on the thread of the API's client. Outcomes that come when this object is gone are
/// dropped. Belongs to the host's thread.
#pragma once

#include "api.hpp"
#include "dynamodb/requests.hpp"
#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

class table_client {
public:
    template <class T>
    using outcome = tl::expected<T, aws::api_failure>;

    struct request {
        std::string_view operation;  ///< "Query".
        std::string body;
        bool repeatable{true};
    };

    /// Each request ends within `timeout`.
    table_client(host& home, std::unique_ptr<aws::api> service, milliseconds timeout)
        : home_(home), timeout_(timeout), service_(std::move(service)) {}

    /// `decode` is called with the body of a reply, on another thread.
    template <class T, class Decode>
    void call(request what, Decode decode, std::function<void(outcome<T>)> done) {
        auto on_host = alive_.guard([this, done = std::move(done)](wall_time date, outcome<T>& reply) {
            if (date != wall_time{}) ahead_ = date - home_.wall();
            done(std::move(reply));
        });
        aws::api_request sent{
            aws::dynamodb::target_of(what.operation),
            aws::dynamodb::content_type,
            std::move(what.body),
            what.repeatable,
            false,  // sessions and leases try again at their own pace, which knows of their deadlines
            timeout_};
        service_->send(
            std::move(sent),
            [&home = home_,
             decode = std::move(decode),
             on_host = std::move(on_host)](const outcome<aws::api_reply>& reply) {
                auto found = std::make_shared<outcome<T>>(decoded<T>(decode, reply));
                const auto date = reply ? reply->date : wall_time{};
                home.post([on_host, date, found] { on_host(date, *found); });
            }
        );
    }

    /// The service's clock as of its last reply.
    [[nodiscard]] wall_time service_time() const { return home_.wall() + ahead_; }

private:
    template <class T, class Decode>
    static outcome<T> decoded(const Decode& decode, const outcome<aws::api_reply>& reply) {
        if (!reply) return tl::unexpected(reply.error());
        result<T> read = decode(std::string_view(reply->body));
        if (read) return std::move(*read);
        aws::api_failure failure;
        failure.why = std::move(read.error());
        return tl::unexpected(std::move(failure));
    }

    host& home_;
    milliseconds timeout_;
    milliseconds ahead_{0};
    lifetime alive_;
    std::unique_ptr<aws::api> service_;  // ends first: its last outcomes find the rest still there
};

}  // namespace millrace
