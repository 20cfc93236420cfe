// A relay within an application: moves what is committed in the outbox to local streams.
// usage: run_relay OUTBOX_URL SINK_URL   (such as sqlite:shop.db local:streams.db)
#include <millrace/relay.hpp>

#include <cstdio>
#include <utility>

int main(int argc, char** argv) {
    if (argc != 3) return std::fputs("usage: run_relay OUTBOX_URL SINK_URL\n", stderr), 2;
    millrace::relay_settings settings;
    settings.outbox = argv[1];
    settings.sink = argv[2];
    settings.once = true;  // a service leaves this out, and stops by a stop token
    settings.stop_on_signals = true;
    settings.on_leadership = [](const millrace::leadership_change& news) {
        const bool leads = news.what == millrace::leadership_change::kind::acquired;
        std::puts(leads ? "leading" : "not leading");
    };

    millrace::relay relay(std::move(settings));
    const auto outcome = relay.run();
    if (!outcome) {
        std::fprintf(stderr, "%s\n", outcome.error().detail.c_str());
        return 1;
    }
    std::printf("delivered %llu\n", static_cast<unsigned long long>(outcome->deleted));
    return 0;
}
