// The stub as a debugger sees it: packets over a socket against a machine that runs a few Thumb instructions; and,
// where it is installed, GDB itself.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/host/file.h"
#include "board/gdb/packet.h"
#include "board/gdb/registers.h"
#include "board/gdb/server.h"
#include "link/memory_map.h"

namespace talpa::board::gdb {
namespace {

using namespace std::chrono_literals;

TEST(Packets, ChecksumsAndEscapesAreThoseOfTheManual) {
    EXPECT_EQ(framed("OK"), "$OK#9a");  // as any log of GDB shows it
    EXPECT_EQ(framed("a}b"), "$a}]b#9d");
    PacketReader reader;
    const auto events = reader.feed("+$OK#9a$OK#9b\x03-$a}]b#9dx$$g#67");
    ASSERT_EQ(events.size(), 6u);
    EXPECT_EQ(events[0].payload, "OK");
    EXPECT_EQ(events[1].kind, Event::Kind::Damaged);
    EXPECT_EQ(events[2].kind, Event::Kind::Interrupt);
    EXPECT_EQ(events[3].kind, Event::Kind::Nack);
    EXPECT_EQ(events[4].payload, "a}b");
    EXPECT_EQ(events[5].payload, "g");
}

TEST(Packets, ArriveInAnyPieces) {
    PacketReader reader;
    std::vector<Event> all;
    for (const char c : std::string_view("$m20000000,4#4f"))
        for (Event& e : reader.feed({&c, 1})) all.push_back(e);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].payload, "m20000000,4");
}

TEST(Packets, OneThatIsTooLongIsDamagedAndTheNextIsRead) {
    PacketReader reader;
    const std::string huge(PacketReader::kMaxPayload + 10, 'a');
    const auto events = reader.feed("$" + huge + "#00$g#67");
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].kind, Event::Kind::Damaged);
    EXPECT_EQ(events[1].payload, "g");
}

constexpr std::uint32_t kCode = 0x0FFE0400, kLoop = kCode + 2;

class GdbTest : public ::testing::Test {
  protected:
    void SetUp() override {
        machine_ = Machine::create({}, log_).value();
        // MOVS r0,#0; loop: ADDS r0,#1; B loop
        const std::uint16_t code[] = {0x2000, 0x3001, 0xE7FD};
        const std::uint32_t vectors[2] = {0x20010000, kCode | 1};
        std::memcpy(machine_->memory().at(link::kItcmSystem, 8), vectors, 8);
        std::memcpy(machine_->memory().at(link::kItcmSystem + 0x400, 6), code, 6);
        machine_->start(link::kItcm.base);
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
        server_ = std::thread([this] { serve(*machine_, ends_[1]); });
    }
    void TearDown() override {
        if (server_.joinable()) {
            ::shutdown(ends_[0], SHUT_RDWR);
            server_.join();
        }
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void send(const std::string& bytes) {
        ASSERT_EQ(::write(ends_[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    }
    /// The next packet from the stub; "(silence)" after five seconds.
    std::string receive() {
        for (;;) {
            if (!waiting_.empty()) {
                const std::string payload = waiting_.front().payload;
                waiting_.erase(waiting_.begin());
                return payload;
            }
            pollfd p{ends_[0], POLLIN, 0};
            if (::poll(&p, 1, 5000) <= 0) return "(silence)";
            char buffer[4096];
            const ssize_t n = ::read(ends_[0], buffer, sizeof buffer);
            if (n <= 0) return "(gone)";
            waiting_ = reader_.feed({buffer, static_cast<std::size_t>(n)});
            std::erase_if(waiting_, [](const Event& e) { return e.kind != Event::Kind::Packet; });
        }
    }
    std::string ask(const std::string& payload) {
        send(framed(payload));
        return receive();
    }
    std::uint32_t reg(unsigned number) {
        const auto bytes = from_hex(ask(fmt::format("p{:x}", number)));
        std::uint32_t value = 0;
        if (bytes && bytes->size() == 4) std::memcpy(&value, bytes->data(), 4);
        return value;
    }

    KernelLog log_;
    std::unique_ptr<Machine> machine_;
    std::thread server_;
    int ends_[2] = {-1, -1};
    PacketReader reader_;
    std::vector<Event> waiting_;
};

TEST_F(GdbTest, DescribesTheRegistersThatItGives) {
    EXPECT_NE(ask("qSupported:swbreak+").find("qXfer:features:read+"), std::string::npos);
    std::string xml, part;
    do {
        part = ask(fmt::format("qXfer:features:read:target.xml:{:x},200", xml.size()));
        ASSERT_TRUE(part[0] == 'm' || part[0] == 'l') << part;
        xml += part.substr(1);
    } while (part[0] == 'm');
    for (const char* feature : {"org.gnu.gdb.arm.m-profile", "org.gnu.gdb.arm.vfp", "org.gnu.gdb.arm.m-system"})
        EXPECT_NE(xml.find(feature), std::string::npos) << feature;
    EXPECT_NE(xml.find("<reg name=\"xpsr\" bitsize=\"32\" regnum=\"16\""), std::string::npos);
    EXPECT_NE(xml.find("<reg name=\"d15\" bitsize=\"64\" regnum=\"32\" type=\"ieee_double\""), std::string::npos);
    // 17 words, 16 doubles, fpscr, msp, psp, msplim, psplim, four bytes
    EXPECT_EQ(ask("g").size(), 2u * (17 * 4 + 16 * 8 + 5 * 4 + 4));
    EXPECT_EQ(ask("qXfer:features:read:target.xml:ffffff,10"), "E16");
}

TEST_F(GdbTest, StepsOneInstructionAtATime) {
    EXPECT_EQ(ask("?"), "T05thread:1;");
    for (int i = 0; i < 6; ++i) {
        const std::uint32_t before = reg(15), r0 = reg(0);
        EXPECT_EQ(ask("s"), "T05thread:1;");
        if (before == kLoop) {
            EXPECT_EQ(reg(15), kLoop + 2);
            EXPECT_EQ(reg(0), r0 + 1);
        } else {
            EXPECT_EQ(reg(15), kLoop);
        }
    }
}

TEST_F(GdbTest, BreakpointsStopBeforeTheInstructionAndAreNotInMemory) {
    EXPECT_EQ(ask(fmt::format("Z0,{:x},2", kLoop)), "OK");
    EXPECT_EQ(ask("c"), "T05swbreak:;thread:1;");
    EXPECT_EQ(reg(15), kLoop);
    const std::uint32_t first = reg(0);
    for (std::uint32_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(ask("vCont;c"), "T05swbreak:;thread:1;");
        EXPECT_EQ(reg(0), first + i);
    }
    EXPECT_EQ(ask(fmt::format("m{:x},2", kLoop)), "0130") << "the instruction itself";
    EXPECT_EQ(ask(fmt::format("z0,{:x},2", kLoop)), "OK");
    send(framed("c"));
    std::this_thread::sleep_for(20ms);
    send("\x03");
    EXPECT_EQ(receive(), "T02thread:1;");
    EXPECT_GT(reg(0), first + 1000) << "it ran freely";
    EXPECT_EQ(ask("Z2,20000000,4"), "") << "no watchpoints";
}

TEST_F(GdbTest, MemoryIsReadAndWrittenAndUnmappedAddressesAreErrors) {
    EXPECT_EQ(ask("M20008000,6:010203040506"), "OK");
    EXPECT_EQ(ask("m20008000,6"), "010203040506");
    EXPECT_EQ(ask("m20008001,3"), "020304");
    const std::uint8_t* const at = machine_->memory().at(link::kDtcmSystem + 0x8000, 6);
    EXPECT_EQ(at[5], 6) << "Linux sees the same memory";
    EXPECT_EQ(ask("m60000000,4"), "E0e");
    EXPECT_EQ(ask("M60000000,4:00000000"), "E0e");
    EXPECT_EQ(ask("me000ed00,4"), "13d20f41") << "CPUID";
    EXPECT_EQ(ask("X20008000,3:a}b"), "OK");
    EXPECT_EQ(ask("m20008000,3"), "617d62");
    EXPECT_EQ(ask("m2000"), "E16");
    EXPECT_EQ(ask("M20008000,2:01"), "E16");
}

TEST_F(GdbTest, ChangedCodeIsExecuted) {
    EXPECT_EQ(ask(fmt::format("Z0,{:x},2", kLoop)), "OK");
    EXPECT_EQ(ask("c"), "T05swbreak:;thread:1;");
    EXPECT_EQ(ask(fmt::format("M{:x},2:0530", kLoop)), "OK");  // ADDS r0,#5
    const std::uint32_t before = reg(0);
    EXPECT_EQ(ask("c"), "T05swbreak:;thread:1;");
    EXPECT_EQ(reg(0), before + 5);
}

TEST_F(GdbTest, RegistersAreWrittenTheFpuIncluded) {
    EXPECT_EQ(ask("P0=78563412"), "OK");
    EXPECT_EQ(reg(0), 0x12345678u);
    EXPECT_EQ(ask("P11=000000000000f03f"), "OK");  // d0 = 1.0
    EXPECT_EQ(ask("p11"), "000000000000f03f");
    EXPECT_EQ(ask("P22=00f00020"), "OK");  // msp
    EXPECT_EQ(reg(13), 0x2000F000u) << "sp is the main stack";
    EXPECT_EQ(ask("P63=00"), "E16");
    EXPECT_EQ(ask("P0=00"), "E16");
    const std::string all = ask("g");
    EXPECT_EQ(ask("G" + all), "OK");
    EXPECT_EQ(ask("g"), all);
    for (const std::string& wrong : {std::string("00"), std::string("01000000"), all.substr(2), all + "00"})
        EXPECT_EQ(ask("G" + wrong), "E16") << wrong;
    EXPECT_EQ(ask("g"), all) << "nothing of a wrong packet is taken";
}

TEST_F(GdbTest, UnknownPacketsGetTheEmptyAnswerAndDamagedOnesANack) {
    for (const char* packet : {"", "!", "qWhatever", "vMustReplyEmpty", "Z9,0,0", "b", "QNonStop:1"})
        EXPECT_EQ(ask(packet), "") << packet;
    send("$g#00");
    char answer = 0;
    ASSERT_EQ(::read(ends_[0], &answer, 1), 1);
    EXPECT_EQ(answer, '-');
    EXPECT_EQ(ask("QStartNoAckMode"), "OK");
    EXPECT_EQ(ask("qC"), "QC1");
}

TEST_F(GdbTest, DetachingLetsTheCoreRunWithoutBreakpoints) {
    EXPECT_EQ(ask(fmt::format("Z0,{:x},2", kLoop)), "OK");
    EXPECT_EQ(ask("D"), "OK");
    server_.join();
    const std::uint64_t before = machine_->instructions();
    for (int i = 0; i < 2000 && machine_->instructions() < before + 1000000; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GE(machine_->instructions(), before + 1000000);
}

TEST_F(GdbTest, ASecondDebuggerIsSentAwayAndTheFirstGoesOn) {
    EXPECT_EQ(ask("?"), "T05thread:1;");
    int second[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, second), 0);
    serve(*machine_, second[1]);  // returns, though nobody has hung up
    ::close(second[0]);
    ::close(second[1]);
    const std::uint32_t before = reg(0);
    EXPECT_EQ(ask("m0ffe0402,2"), "0130") << "the core still stands";
    EXPECT_EQ(reg(0), before);
}

TEST_F(GdbTest, LinuxStopsAndStartsACoreThatTheDebuggerHolds) {
    EXPECT_EQ(ask("?"), "T05thread:1;");
    machine_->stop();
    machine_->start(link::kItcm.base);
    std::this_thread::sleep_for(10ms);
    EXPECT_EQ(reg(15), kCode) << "held before its first instruction";
    EXPECT_EQ(ask("s"), "T05thread:1;");
    EXPECT_EQ(reg(15), kLoop);
}

TEST_F(GdbTest, ALockupIsTold) {
    EXPECT_EQ(ask("Pf=00000060"), "OK");  // nothing is there: a fault, and no handler in the vector table
    EXPECT_EQ(ask("c"), "T0bthread:1;");
}

std::string output_of(const std::string& command) {
    std::string text;
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return text;
    char buffer[512];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
    ::pclose(pipe);
    return text;
}

TEST_F(GdbTest, GdbItselfAttachesStepsAndBreaks) {
    if (::access("/usr/bin/gdb-multiarch", X_OK) != 0) GTEST_SKIP() << "gdb-multiarch is not installed";
    EXPECT_EQ(ask("D"), "OK");
    server_.join();
    auto listener = Listener::on_port(*machine_, 0).value();
    const std::string output = output_of(
        fmt::format("gdb-multiarch -nx -batch -ex 'set architecture armv8-m.main' -ex 'target remote localhost:{}' "
                    "-ex 'break *0x{:x}' -ex 'continue' -ex 'print/x $pc' -ex 'delete' -ex 'set $r0=0x41' -ex 'stepi' "
                    "-ex 'print/x $r0' -ex 'print $d3' -ex 'set $d3=2.5' -ex 'print $d3' -ex 'print/x $msp' "
                    "-ex 'x/2i $pc' -ex 'info registers primask' -ex 'set {{int}}0x20008000=0x1234' -ex 'x/wx "
                    "0x20008000' -ex 'detach'",
                    listener->port(), kLoop));
    for (const char* expected : {"Breakpoint 1, 0x0ffe0402", "$1 = 0xffe0402", "$2 = 0x42", "$4 = 2.5",
                                 "$5 = 0x20010000", "b.n\t0xffe0402", "primask", "0x20008000:\t0x00001234"})
        EXPECT_NE(output.find(expected), std::string::npos) << expected << " in\n" << output;
}

TEST_F(GdbTest, ListenerOnAPathServesOneAfterTheOtherAndLeavesNothing) {
    EXPECT_EQ(ask("D"), "OK");
    server_.join();
    const auto path = std::filesystem::temp_directory_path() / fmt::format("talpa-gdb-test-{}.socket", ::getpid());
    auto listener = Listener::on_path(*machine_, path).value();
    for (int round = 0; round < 3; ++round) {
        const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, path.c_str());
        ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        const std::string packet = framed("?");
        ASSERT_EQ(::write(client, packet.data(), packet.size()), static_cast<ssize_t>(packet.size()));
        char c = 0;
        ASSERT_EQ(::read(client, &c, 1), 1);
        EXPECT_EQ(c, '+');
        ::close(client);  // without a word
    }
    listener.reset();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_FALSE(Listener::on_path(*machine_, "/nonexistent/folder/x"));
}

}  // namespace
}  // namespace talpa::board::gdb
