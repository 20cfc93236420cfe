#ifdef MILLRACE_WITH_AWS

#include "kinesis_adapters.hpp"

#include "aws_access.hpp"
#include "dead_letters.hpp"
#include "kinesis_admin.hpp"
#include "kinesis_sink.hpp"
#include "kinesis_source.hpp"
#include "kinesis_url.hpp"

#include <utility>

namespace millrace::kinesis_adapters {

namespace {

result<kinesis_address> address_of(const url& where) {
    return with_endpoint("kinesis", parse_kinesis_url(where.path));
}

std::unique_ptr<aws::api> client_of(const kinesis_address& address, log_sink& log) {
    return open_aws("kinesis", address.region, address.endpoint, log);
}

}  // namespace

result<std::unique_ptr<record_source>> open_source(const url& where, host& home) {
    auto address = address_of(where);
    if (!address) return tl::unexpected(std::move(address.error()));
    auto api = client_of(*address, home.log());
    return std::make_unique<kinesis_source>(home, std::move(*address), std::move(api));
}

result<opened_sink> open_sink(const url& where, host& home, const sink_options& /*options*/) {
    auto address = address_of(where);
    if (!address) return tl::unexpected(std::move(address.error()));
    auto api = client_of(*address, home.log());
    kinesis_sink_options chosen;
    if (address->losses) chosen.losses = *address->losses;
    auto made = std::make_unique<kinesis_sink>(home, std::move(*address), std::move(api), chosen);
    auto* const sink = made.get();
    return opened_sink{std::move(made), [sink](completion<void> done) { sink->look(std::move(done)); }};
}

// Kinesis has no headers, so why a record is there stands in the log only; and no tombstones.
result<opened_dead_letters> open_dead_letters(const url& where, const std::string& origin, host& home) {
    auto address = address_of(where);
    if (!address) return tl::unexpected(std::move(address.error()));
    auto api = client_of(*address, home.log());
    kinesis_sink_options chosen;
    chosen.losses.empty_tombstones = true;
    chosen.losses.record_bytes_max = 10 << 20;  // what the stream takes, it says itself
    auto made = std::make_unique<kinesis_sink>(home, std::move(*address), std::move(api), chosen);
    auto* const sink = made.get();
    return opened_dead_letters{
        std::make_unique<sink_dead_letters>(std::move(made), where.stream, origin),
        [sink](completion<void> done) { sink->look(std::move(done)); }};
}

result<std::unique_ptr<stream_admin>> open_stream_admin(const url& where, milliseconds wait) {
    auto address = address_of(where);
    if (!address) return tl::unexpected(std::move(address.error()));
    auto api = client_of(*address, null_log());
    return std::make_unique<kinesis_admin>(std::move(*address), std::move(api), wait);
}

}  // namespace millrace::kinesis_adapters

#endif
