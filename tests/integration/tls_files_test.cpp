// What is wrong with the files of TLS is said before anything connects.
#include "tls_files.hpp"

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace millrace {
namespace {

using testing::HasSubstr;
using of = tls_fault::of;

class TlsFiles : public testing::Test {
protected:
    TlsFiles() {
        make("client", "-passout pass:right");
        make("other", "-nodes");
        std::ofstream(folder.file("text")) << "no certificate\n";
        EXPECT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
    }
    void make(const std::string& name, const std::string& how) const {
        const auto made = support::run(
            {"/bin/sh",
             "-c",
             "openssl req -x509 -newkey rsa:2048 -subj /CN=" + name + " " + how + " -keyout " +
                 folder.file(name + ".key") + " -out " + folder.file(name + ".crt")}
        );
        ASSERT_EQ(made.status, 0) << made.errors;
    }
    void expect(const tls_files& files, of file, const std::string& why) const {
        const auto fault = fault_of(files);
        ASSERT_TRUE(fault);
        EXPECT_EQ(fault->file, file);
        EXPECT_THAT(fault->why, HasSubstr(why));
    }

    support::temporary_folder folder;
    std::string crt = folder.file("client.crt");
    std::string key = folder.file("client.key");
};

TEST_F(TlsFiles, TakesNoneAndThoseThatBelongTogether) {
    EXPECT_FALSE(fault_of({}));
    EXPECT_FALSE(fault_of({.ca = crt}));
    EXPECT_FALSE(fault_of({crt, crt, key, "right"}));
    EXPECT_FALSE(fault_of({"", folder.file("other.crt"), folder.file("other.key"), ""}));
}

TEST_F(TlsFiles, NamesAnAuthorityThatIsNone) {
    expect({.ca = folder.file("absent")}, of::ca, "is not there");
    expect({.ca = folder.path().string()}, of::ca, "is no regular file");
    expect({.ca = folder.file("pipe")}, of::ca, "is no regular file");
    expect({.ca = folder.file("text")}, of::ca, "holds no certificate");
    expect({.ca = key}, of::ca, "holds no certificate");
}

TEST_F(TlsFiles, NamesACertificateOrKeyThatCannotBeUsed) {
    expect({"", folder.file("text"), key, "right"}, of::certificate, "holds no certificate");
    expect({"", crt, folder.file("absent"), "right"}, of::key, "is not there");
    expect({"", crt, folder.file("text"), "right"}, of::key, "client_key_password");
    expect({"", crt, key, "wrong"}, of::key, "client_key_password");
    expect({"", crt, key, ""}, of::key, "client_key_password");
    expect({"", crt, folder.file("other.key"), ""}, of::key, "belongs to another certificate");
}

}  // namespace
}  // namespace millrace
