#include "schemas_section.hpp"

#include "cli.hpp"
#include "config.hpp"

#include <gmock/gmock.h>

namespace millrace::app {
namespace {

using schema::coding_mode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

struct SchemasSection : testing::Test {
    /// The section `schemas` of a file, whose lines are given without their indentation.
    schema_settings read(const std::string& lines) {
        found = {};
        std::string text = "schemas:\n";
        std::size_t at = 0;
        while (at < lines.size()) {
            const auto end = lines.find('\n', at);
            text += "  " + lines.substr(at, end - at) + "\n";
            at = end == std::string::npos ? lines.size() : end + 1;
        }
        const auto variables = [](const std::string& name) {
            return name == "SECRET" ? std::optional<std::string>("hush") : std::nullopt;
        };
        const auto values = parse_config("m.yaml", text, variables, found);
        const auto section = values.find("schemas");
        const std::vector<given_value> none;
        resolved = resolve_schemas(section == values.end() ? none : section->second, found);
        return schema_settings_of(resolved);
    }
    std::string fault_of(const std::string& lines) {
        (void)read(lines);
        return found.lines().empty() ? "" : found.lines().front();
    }
    /// A rule for `orders` whose value has these settings.
    static std::string rule(const std::string& value) {
        return "registry: http://r:8081\nrules:\n- {topic: orders, value: {" + value + "}}\n";
    }

    faults found;
    settings resolved;
};

TEST_F(SchemasSection, GivesTheRegistryAndTheRulesInOrder) {
    const auto out = read(
        "registry: [http://a:8081, https://b/apis/ccompat/v7]\n"
        "user: me\n"
        "password: ${ENV:SECRET}\n"
        "connect_timeout: 1s\n"
        "request_timeout: 2s\n"
        "latest_ttl: 5s\n"
        "cache_bytes: 1MiB\n"
        "rules:\n"
        "- topic: orders\n"
        "  value: {mode: avro, subject: record, record: acme.Order, unions: plain, logical: avro, "
        "ignore_unknown_fields: true}\n"
        "  key: {mode: frame, format: protobuf, message: 1/0, version: header, version_header: v}\n"
        "- {topic: 'raw*', value: {mode: frame, subject: given, subject_name: s, version: 3, id: header}}\n"
        "- {topic: '*', value: json}\n"
    );
    ASSERT_THAT(found.lines(), IsEmpty());
    EXPECT_THAT(out.urls, ElementsAre("http://a:8081", "https://b/apis/ccompat/v7"));
    EXPECT_EQ(out.user, "me");
    EXPECT_EQ(out.password, "hush");
    EXPECT_EQ(out.connect_timeout, milliseconds{1'000});
    EXPECT_EQ(out.request_timeout, milliseconds{2'000});
    EXPECT_EQ(out.latest_time, milliseconds{5'000});
    EXPECT_EQ(out.cache_bytes, 1'048'576U);
    ASSERT_THAT(out.rules, SizeIs(3));
    schema::coding_rule value;
    value.mode = coding_mode::avro;
    value.subject = schema::subject_strategy::record;
    value.record_name = "acme.Order";
    value.unions = schema::union_style::plain;
    value.logical = schema::logical_values::avro;
    value.ignore_unknown_fields = true;
    EXPECT_EQ(out.rules[0].value, value);
    schema::coding_rule key;
    key.mode = coding_mode::frame;
    key.format = schema::schema_format::protobuf;
    key.message_index = {1, 0};
    key.version = schema::version_choice::header;
    key.version_header = "v";
    EXPECT_EQ(out.rules[0].key, key);
    EXPECT_EQ(out.rules[1].topic, "raw*");
    EXPECT_EQ(out.rules[1].value.fixed_version, 3);
    EXPECT_EQ(out.rules[1].value.place, schema::id_place::header);
    EXPECT_EQ(out.rules[1].value.given_subject, "s");
    EXPECT_EQ(out.rules[1].key, schema::coding_rule{});
    EXPECT_EQ(out.rules[2].value.mode, coding_mode::json) << "a mode alone";
}

TEST_F(SchemasSection, NamesThePlaceOfEachFaultAndTheNearestKey) {
    EXPECT_EQ(
        fault_of(rule("mode: avro, subjekt: record")),
        "m.yaml:4:41: unknown key \"subjekt\" in the value of a rule; did you mean \"subject\"?"
    );
    EXPECT_EQ(
        fault_of(rule("mode: avrow")),
        "m.yaml:4:35: mode: \"avrow\" is not one of none, frame, avro, json; did you mean \"avro\"?"
    );
    EXPECT_THAT(
        fault_of(rule("mode: avro, version: new")), HasSubstr("neither latest nor header nor a number")
    );
    EXPECT_THAT(
        fault_of(rule("mode: avro, version: 0")), HasSubstr("neither latest nor header nor a number")
    );
    EXPECT_THAT(fault_of(rule("mode: avro, mode: json")), HasSubstr("key \"mode\" is there twice"));
    EXPECT_THAT(fault_of(rule("mode: [avro]")), HasSubstr("mode must have one value, not a list"));
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- {topik: orders}\n"),
        HasSubstr("unknown key \"topik\" in a rule; did you mean \"topic\"?")
    );
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- {value: avro}\n"), HasSubstr("a rule without its topic")
    );
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules: avro\n"), HasSubstr("rules must be a list of rules")
    );
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- avro\n"), HasSubstr("a rule must hold keys and values")
    );
    EXPECT_THAT(fault_of("registri: http://r:8081\n"), HasSubstr("unknown key \"registri\" in schemas"));
}

TEST_F(SchemasSection, RefusesWhatContradictsItselfWithTheReason) {
    EXPECT_THAT(fault_of(rule("mode: avro, format: json")), HasSubstr("`format` is of `mode: frame` only"));
    EXPECT_THAT(fault_of(rule("mode: avro, auto_register: true")), HasSubstr("set `schema_file`"));
    EXPECT_THAT(fault_of(rule("mode: avro, subject: given")), HasSubstr("set `subject_name`"));
    EXPECT_THAT(fault_of(rule("mode: avro, subject: record")), HasSubstr("set `record` or `schema_file`"));
    EXPECT_THAT(fault_of(rule("mode: avro, version: header")), HasSubstr("a header that has no name"));
    EXPECT_THAT(fault_of(rule("unions: plain")), HasSubstr("its mode is none"));
    EXPECT_THAT(
        fault_of(rule("mode: frame, format: protobuf, message: x")),
        HasSubstr("`message` is no place of a message")
    );
    EXPECT_THAT(fault_of("rules:\n- {topic: a, value: avro}\n"), HasSubstr("no registry; name its address"));
    EXPECT_THAT(fault_of("registry: http://r:8081\n"), HasSubstr("no rule uses it"));
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- {topic: '*', value: avro}\n- {topic: a, value: json}\n"),
        HasSubstr("never decides, because rule 1")
    );
    EXPECT_THAT(
        fault_of(
            "registry: http://r:8081\ntoken: a\nuser: b\npassword: c\nrules:\n- {topic: a, value: avro}\n"
        ),
        AllOf(Not(IsEmpty()), Not(HasSubstr("c;")))
    );
    EXPECT_THAT(
        fault_of("registry: http://me:hush@r:8081\nrules:\n- {topic: a, value: avro}\n"),
        AllOf(HasSubstr("user and password beside it"), Not(HasSubstr("hush")))
    );
}

TEST_F(SchemasSection, NamesAllFaultsTogetherEachByItsPlace) {
    (void)read(
        "registry: ['http://r:8081', 'ftp://x']\npassword: hush\nclient_key_password: hush\nrules:\n"
        "- {topic: a, value: {mode: avro, format: json}}\n"
        "- {topic: b, key: {mode: frame, subject: given}}\n"
        "- {topic: a, value: avro}\n"
    );
    EXPECT_THAT(
        found.lines(),
        ElementsAre(
            AllOf(HasSubstr("m.yaml:2:31: "), HasSubstr("urls[1] begins with neither")),
            AllOf(HasSubstr("m.yaml:3:13: "), HasSubstr("password has no user")),
            AllOf(HasSubstr("m.yaml:4:24: "), HasSubstr("client_key_password has no key")),
            AllOf(HasSubstr("m.yaml:6:44: "), HasSubstr("`format` is of `mode: frame` only")),
            AllOf(HasSubstr("m.yaml:7:44: "), HasSubstr("set `subject_name`")),
            AllOf(HasSubstr("m.yaml:8:13: "), HasSubstr("never decides, because rule 1"))
        )
    );
}

TEST_F(SchemasSection, RefusesARuleThatSaysNothing) {
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- {topic: o}\n"),
        HasSubstr("m.yaml:4:5: a rule that says neither value nor key")
    );
    EXPECT_THAT(
        fault_of("registry: http://r:8081\nrules:\n- {topic: o, value: {}}\n"),
        HasSubstr("m.yaml:4:23: the value of a rule is empty")
    );
    (void)read("registry: http://r:8081\nrules:\n- {topic: o, value: none}\n");
    EXPECT_THAT(found.lines(), IsEmpty()) << "said so";
}

TEST_F(SchemasSection, NamesTheFilesThatCannotBeRead) {
    (void)read(
        "registry: http://r:8081\nca_file: /nope/ca.pem\nrules:\n"
        "- {topic: o, value: {mode: avro, auto_register: true, schema_file: /nope.avsc}}\n"
    );
    ASSERT_THAT(found.lines(), IsEmpty());
    check_schema_files(resolved, found);
    EXPECT_THAT(
        found.lines(),
        ElementsAre(
            AllOf(HasSubstr("m.yaml:3:12: ca_file: "), HasSubstr("/nope/ca.pem")),
            AllOf(HasSubstr("m.yaml:5:"), HasSubstr("schema_file: "), HasSubstr("/nope.avsc"))
        )
    );
    EXPECT_EQ(found.status(), exit_status::failed);
}

TEST_F(SchemasSection, SaysWhatIsWrongWithAnAddress) {
    const auto why = [&](const std::string& url) {
        return fault_of("registry: '" + url + "'\nrules:\n- {topic: a, value: avro}\n");
    };
    for (const auto* url : {"http://h:1?x=y", "http://h:1#f", "http://h h"})
        EXPECT_THAT(why(url), HasSubstr("has a query, a fragment or a space")) << url;
    EXPECT_THAT(why("http://" + std::string(256, 'h')), HasSubstr("more than 255 characters"));
}

TEST_F(SchemasSection, ShowsNoSecret) {
    (void)read(
        "registry: http://r:8081\nuser: me\npassword: hush\ntoken: ${ENV:SECRET}\nrules:\n- {topic: a, "
        "value: avro}\n"
    );
    for (const setting& s : resolved.all()) {
        EXPECT_THAT(s.shown, Not(HasSubstr("hush"))) << s.option->name;
        if (s.option->name == "password") {
            EXPECT_EQ(s.shown, "***");
        }
        if (s.option->name == "token") {
            EXPECT_EQ(s.shown, "${ENV:SECRET}");
        }
    }
}

}  // namespace
}  // namespace millrace::app
