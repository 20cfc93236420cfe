/// Properties of everything that reads text or bytes from outside, each a function of one input.
///
/// libFuzzer drives them (`./dev fuzz`), and a unit test replays the corpora. A property that does not hold
/// is thrown as `property_failed`. Not thread-safe: some keep a database between calls.
#pragma once

#include <array>
#include <stdexcept>
#include <string_view>

namespace millrace::fuzz {

struct property_failed : std::logic_error {
    using std::logic_error::logic_error;
};

inline void require(bool holds, const char* property) {
    if (!holds) throw property_failed(property);
}

void ndjson(std::string_view line);
void config(std::string_view text);
void outbox_headers(std::string_view json);
void local_headers(std::string_view encoded);
void local_cursor(std::string_view text);
void url(std::string_view text);
void numbers(std::string_view text);
void units(std::string_view text);
void bytes_text(std::string_view bytes);
void lease_tables(std::string_view columns);
void kpl(std::string_view bytes);
void import_lines(std::string_view text);
#ifdef MILLRACE_WITH_POSTGRES
void postgres_values(std::string_view bytes);
void postgres_address(std::string_view text);
#endif
#ifdef MILLRACE_WITH_AWS
void aws_reply(std::string_view text);
void aws_address(std::string_view text);
void aws_profiles(std::string_view text);
void aws_key_document(std::string_view json);
void aws_sts_reply(std::string_view xml);
void aws_key_place(std::string_view url);
void dynamodb_replies(std::string_view body);
void kinesis_messages(std::string_view bytes);
void kinesis_address(std::string_view text);
#endif
#ifdef MILLRACE_WITH_SCHEMAS
void avro_values(std::string_view text);
void json_schemas(std::string_view text);
void schema_registry_replies(std::string_view bytes);
#endif

struct target {
    std::string_view name;
    void (*run)(std::string_view);
};

inline constexpr std::array targets{
    target{"ndjson", ndjson},
    target{"config", config},
    target{"outbox_headers", outbox_headers},
    target{"local_headers", local_headers},
    target{"local_cursor", local_cursor},
    target{"url", url},
    target{"numbers", numbers},
    target{"units", units},
    target{"bytes_text", bytes_text},
    target{"lease_tables", lease_tables},
    target{"kpl", kpl},
    target{"import_lines", import_lines},
#ifdef MILLRACE_WITH_POSTGRES
    target{"postgres_values", postgres_values},
    target{"postgres_address", postgres_address},
#endif
#ifdef MILLRACE_WITH_AWS
    target{"aws_reply", aws_reply},
    target{"aws_address", aws_address},
    target{"aws_profiles", aws_profiles},
    target{"aws_key_document", aws_key_document},
    target{"aws_sts_reply", aws_sts_reply},
    target{"aws_key_place", aws_key_place},
    target{"dynamodb_replies", dynamodb_replies},
    target{"kinesis_messages", kinesis_messages},
    target{"kinesis_address", kinesis_address},
#endif
#ifdef MILLRACE_WITH_SCHEMAS
    target{"avro_values", avro_values},
    target{"json_schemas", json_schemas},
    target{"schema_registry_replies", schema_registry_replies},
#endif
};

}  // namespace millrace::fuzz
