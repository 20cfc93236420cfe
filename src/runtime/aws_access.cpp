#ifdef MILLRACE_WITH_AWS

#include "aws_access.hpp"

#include "client.hpp"
#include "credentials/key_chain.hpp"

#include <map>
#include <mutex>

namespace millrace {

namespace {

/// Looked for anew when no client of the region is left; the region is where STS is asked.
std::shared_ptr<aws::key_source> keys_of_process(const std::string& region, log_sink& log) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<aws::key_source>> known;
    const std::lock_guard lock(mutex);
    auto& of_region = known[region];
    auto keys = of_region.lock();
    if (!keys)
        of_region = keys = std::make_shared<aws::key_chain>(aws::key_chain_options{.region = region}, log);
    return keys;
}

}  // namespace

std::unique_ptr<aws::api> open_aws(
    const std::string& service, const std::string& region, const std::string& endpoint, log_sink& log
) {
    return std::make_unique<aws::client>(
        aws::client_options{.service = service, .region = region, .endpoint = endpoint},
        keys_of_process(region, log)
    );
}

}  // namespace millrace

#endif
