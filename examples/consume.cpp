// A worker of a group: processes the records of the shards it is given, in order per key.
// usage: consume STREAM_URL GROUP STATE_URL   (such as local:streams.db/orders billing sqlite:billing.db)
#include <millrace/consumer.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

class print_orders final : public millrace::record_handler {
public:
    millrace::result<millrace::handled> handle(
        const std::shared_ptr<const millrace::record_batch>& batch, const millrace::delivery& how
    ) override {
        for (const auto& record : batch->records()) {
            if (how.stop.stop_requested()) {
                // What was not acknowledged comes again, here or at another worker.
                return millrace::fail(millrace::errc::cancelled, "the worker is to stop");
            }
            std::printf("%s\n", std::string(record.data.value_or("(deleted)")).c_str());
            how.acknowledge.up_to(static_cast<std::size_t>(&record - batch->records().data()));
        }
        return millrace::handled::all;
    }
};

int main(int argc, char** argv) {
    if (argc != 4) return std::fputs("usage: consume STREAM_URL GROUP STATE_URL\n", stderr), 2;
    millrace::consumer_settings settings;
    settings.stream = argv[1];
    settings.group = argv[2];
    settings.state = argv[3];
    settings.idle_exit = std::chrono::seconds{1};  // a service leaves this out, and stops by a stop token
    settings.stop_on_signals = true;

    print_orders handler;
    millrace::consumer consumer(std::move(settings), handler);
    if (const auto outcome = consumer.run(); !outcome) {
        std::fprintf(stderr, "%s\n", outcome.error().detail.c_str());
        return 1;
    }
    return 0;
}
