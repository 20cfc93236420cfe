#include "relay/writers.hpp"

#include <string>

#include <fmt/format.h>

namespace millrace::bench {

writers::writers(
    const servers& at, const pg_outbox& outbox, int connections, double per_second, std::uint64_t count
)
    : returned_(count), begin_(mono::now() + std::chrono::milliseconds{200}) {
    for (int i = 0; i < connections; ++i)
        threads_.emplace_back([this, &at, &outbox, per_second] { write(at, outbox, per_second); });
}

writers::~writers() {
    next_ = returned_.size();
    finish();
}

double writers::finish() {
    for (auto& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
    mono::rep last = 0;
    for (const auto& moment : returned_)
        last = std::max(last, moment.load());
    const std::chrono::duration<double> took = mono::time_point{mono::duration{last}} - begin_;
    return static_cast<double>(returned_.size()) / took.count();
}

void writers::write(const servers& at, const pg_outbox& outbox, double per_second) {
    const auto connection = connect(at.postgres);
    const auto insert = fmt::format(
        "INSERT INTO {} (topic, key, value) VALUES ('{}', $1::text::bytea, $2::text::bytea)",
        outbox.table(),
        outbox.name()
    );
    PQclear(PQprepare(connection.get(), "put", insert.c_str(), 2, nullptr));
    std::this_thread::sleep_until(begin_);
    for (;;) {
        const auto number = next_.fetch_add(1);
        if (number >= returned_.size()) return;
        if (per_second > 0) {
            const std::chrono::duration<double> offset{static_cast<double>(number) / per_second};
            std::this_thread::sleep_until(begin_ + std::chrono::duration_cast<mono::duration>(offset));
        }
        const auto key = fmt::format("key-{}", number * 7919 % 10'000);
        const auto value = fmt::format("{:<200}", number);
        const char* const values[] = {key.c_str(), value.c_str()};
        const pg_result put{PQexecPrepared(connection.get(), "put", 2, values, nullptr, nullptr, 0)};
        if (PQresultStatus(put.get()) != PGRES_COMMAND_OK) {
            throw std::runtime_error(PQerrorMessage(connection.get()));
        }
        returned_[number].store(mono::now().time_since_epoch().count(), std::memory_order_release);
    }
}

}  // namespace millrace::bench
