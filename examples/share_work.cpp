// The group alone: workers share mailboxes, each handled by one worker at a time from where the last stopped.
// usage: share_work STATE_URL MAILBOX...   (such as sqlite:state.db inbox-1 inbox-2); start it several times
#include <millrace/group.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

int main(int argc, char** argv) {
    if (argc < 3) return std::fputs("usage: share_work STATE_URL MAILBOX...\n", stderr), 2;
    millrace::group_settings settings;
    settings.name = "mail";
    settings.state = argv[1];
    settings.resources.assign(argv + 2, argv + argc);
    auto group = millrace::group::join(std::move(settings));
    if (!group) return std::fprintf(stderr, "%s\n", group.error().detail.c_str()), 1;
    if (const auto place = group->members()) std::printf("worker %zu of %zu\n", place->index, place->total);

    for (;;) {
        const auto mailbox = group->acquire(std::chrono::minutes{1});
        if (!mailbox && mailbox.error().code == millrace::errc::already_finished) break;
        if (!mailbox) return std::fprintf(stderr, "%s\n", mailbox.error().detail.c_str()), 1;
        std::uint64_t next = mailbox->begin() ? mailbox->begin()->sequence.low64() + 1 : 1;
        for (; next <= 3 && !mailbox->stop().stop_requested(); ++next) {
            if (!mailbox->valid()) break;  // paused for too long: another worker has it
            std::printf(
                "%s: letter %llu\n", mailbox->resource().c_str(), static_cast<unsigned long long>(next)
            );
            if (!mailbox->advance(next)) break;
        }
        const auto ended = next > 3 ? mailbox->done() : mailbox->release();
        if (!ended) std::fprintf(stderr, "%s\n", ended.error().detail.c_str());
    }
    return group->leave() ? 0 : 1;
}
