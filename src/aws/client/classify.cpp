#include "client/classify.hpp"

#include <algorithm>
#include <array>

namespace millrace::aws {

namespace {

constexpr auto never = retry_advice::never;
constexpr auto now = retry_advice::now;
constexpr auto later = retry_advice::after_delay;

constexpr std::string_view slow_down = "fewer requests are allowed; it is tried again later";
constexpr std::string_view of_service = "the service has a fault; it is tried again";
constexpr std::string_view check_clock =
    "check the secret access key, and that the clock of this machine is right";
constexpr std::string_view set_clock = "set the clock of this machine right";
constexpr std::string_view check_keys =
    "check the access key and the session token; temporary ones must be renewed before they expire";
constexpr std::string_view check_policy = "let the IAM policy of these credentials allow it";
constexpr std::string_view check_kms =
    "let the policy of the KMS key that encrypts the stream allow these credentials to use it, and the key "
    "be enabled";
constexpr std::string_view check_endpoint =
    "no AWS service answers there; check the endpoint, and proxies between";

constexpr judgement throttled{failure_class::throttled, errc::throttled, later, false, slow_down};
constexpr judgement transient{failure_class::transient, errc::unavailable, later, true, of_service};
constexpr judgement untouched{
    failure_class::transient,
    errc::unavailable,
    later,
    false,
    "another request was in the way; it is tried again"};
constexpr judgement wrong_time{failure_class::clock_skew, errc::permission_denied, later, false, check_clock};
constexpr judgement wrong_keys{
    failure_class::expired_keys, errc::permission_denied, later, false, check_keys};

constexpr judgement final_one(errc code, retry_advice retry, std::string_view advice) {
    return {failure_class::final, code, retry, false, advice};
}

struct known_type {
    std::string_view name;  ///< Without "Exception" at its end.
    judgement means;
};

// What an administrator can mend is tried again by whoever asked: nothing that runs ends because a table, a
// right or a key is missing.
constexpr std::array known_types{
    known_type{"ProvisionedThroughputExceeded", throttled},
    known_type{"Throttling", throttled},
    known_type{"Throttled", throttled},
    known_type{"RequestThrottled", throttled},
    known_type{"TooManyRequests", throttled},
    known_type{"RequestLimitExceeded", throttled},
    known_type{"BandwidthLimitExceeded", throttled},
    known_type{"LimitExceeded", throttled},
    known_type{"PriorRequestNotComplete", throttled},
    known_type{"TransactionInProgress", throttled},
    known_type{"SlowDown", throttled},
    known_type{"KMSThrottling", throttled},

    known_type{"InternalFailure", transient},
    known_type{"InternalServerError", transient},
    known_type{"InternalError", transient},
    known_type{"ServiceUnavailable", transient},
    known_type{"RequestTimeout", transient},
    known_type{"TransactionConflict", untouched},
    known_type{"ReplicatedWriteConflict", untouched},

    known_type{"RequestExpired", wrong_time},
    known_type{"InvalidSignature", wrong_time},
    known_type{"SignatureDoesNotMatch", wrong_time},
    known_type{"RequestTimeTooSkewed", wrong_time},
    known_type{"RequestInTheFuture", wrong_time},
    known_type{"AuthFailure", wrong_time},

    known_type{"ExpiredToken", wrong_keys},
    known_type{"UnrecognizedClient", wrong_keys},
    known_type{"InvalidClientTokenId", wrong_keys},

    known_type{"AccessDenied", final_one(errc::permission_denied, later, check_policy)},
    known_type{"NotAuthorized", final_one(errc::permission_denied, later, check_policy)},
    known_type{
        "OptInRequired", final_one(errc::permission_denied, later, "the account must subscribe to it")},
    known_type{
        "SubscriptionRequired",
        final_one(errc::permission_denied, later, "the account must subscribe to it")},
    known_type{"IncompleteSignature", final_one(errc::permission_denied, later, check_endpoint)},
    known_type{"MissingAuthenticationToken", final_one(errc::permission_denied, later, check_endpoint)},
    known_type{"KMSAccessDenied", final_one(errc::permission_denied, later, check_kms)},
    known_type{"KMSDisabled", final_one(errc::permission_denied, later, check_kms)},
    known_type{"KMSInvalidState", final_one(errc::permission_denied, later, check_kms)},
    known_type{"KMSNotFound", final_one(errc::permission_denied, later, check_kms)},
    known_type{"KMSOptInRequired", final_one(errc::permission_denied, later, check_kms)},

    known_type{
        "ResourceNotFound",
        final_one(errc::not_found, later, "create it, or check name, region and account")},
    known_type{
        "ResourceInUse",
        final_one(errc::unavailable, later, "it exists, or is being created or changed at present")},
    known_type{"ConditionalCheckFailed", final_one(errc::conflict, never, "read it again, then decide")},
    known_type{"ExpiredIterator", final_one(errc::expired_cursor, now, "make a new one")},
    known_type{"ExpiredNextToken", final_one(errc::expired_cursor, now, "list from the beginning")},
    known_type{
        "ItemCollectionSizeLimitExceeded",
        final_one(errc::out_of_space, later, "the items of one hash key are at most 10 GB")},
    known_type{"Validation", final_one(errc::invalid_argument, never, "this is no valid request")},
    known_type{"InvalidArgument", final_one(errc::invalid_argument, never, "this is no valid request")},
    known_type{"Serialization", final_one(errc::invalid_argument, never, "this is no valid request")},
    known_type{
        "UnknownOperation",
        final_one(errc::invalid_argument, never, "the endpoint does not know this operation")},
};

/// Of a reply whose body names no type: mostly of something between.
judgement by_status(int status) {
    switch (status) {
        case 408:
            return untouched;
        case 429:
            return throttled;
        case 401:
        case 403:
            return final_one(errc::permission_denied, later, "check the endpoint, and proxies between");
        case 407:
            return final_one(errc::permission_denied, later, "the proxy wants a user and a password");
        case 404:
            return final_one(errc::invalid_config, later, check_endpoint);
        case 413:
            return final_one(errc::invalid_argument, never, "send less at a time");
        default:
            break;
    }
    if (status >= 500) return transient;
    return final_one(errc::unavailable, later, check_endpoint);
}

/// "Signature expired: 2026... is now earlier than ...", "Signature not yet current: ..."
bool names_time(std::string_view message) {
    return message.find("expired") != std::string_view::npos ||
           message.find("not yet current") != std::string_view::npos;
}

}  // namespace

judgement classify(int status, std::string_view type, std::string_view message) {
    auto name = type;
    if (name.ends_with("Exception")) name.remove_suffix(std::string_view("Exception").size());
    const auto* const known = std::find_if(known_types.begin(), known_types.end(), [&](const auto& each) {
        return each.name == name;
    });
    if (known != known_types.end()) {
        auto means = known->means;
        if (means.kind == failure_class::clock_skew && names_time(message)) means.advice = set_clock;
        return means;
    }
    if (type.empty() || status >= 500 || status == 429) return by_status(status);
    return final_one(errc::invalid_argument, later, "look this error up in the documentation of the service");
}

std::string_view bare_type(std::string_view type) {
    type = type.substr(0, type.find(':'));
    const auto hash = type.rfind('#');
    return hash == std::string_view::npos ? type : type.substr(hash + 1);
}

std::string shown_message(std::string_view message) {
    constexpr std::size_t bytes_max = 300;
    constexpr std::string_view value_begins = "Value '";
    constexpr std::string_view value_ends = "' at '";
    std::string line(message.substr(0, message.find_first_of("\r\n")));
    const auto begin = line.find(value_begins);
    const auto end = line.rfind(value_ends);
    if (begin != std::string::npos && end != std::string::npos && begin + value_begins.size() <= end) {
        line.replace(begin + value_begins.size(), end - begin - value_begins.size(), "...");
    }
    if (line.size() > bytes_max) {
        auto cut = bytes_max;
        while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0U) == 0x80U)
            --cut;
        line.resize(cut);
    }
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return line;
}

}  // namespace millrace::aws
