// The M33's end of the link against a small Linux: the driver's side of the rings and what a kernel does at start and
// stop.
#include "link/rpmsg.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace talpa::link {
namespace {

struct Received {
    std::string channel;
    std::uint32_t source;
    std::string text;
};

class FakeLinux final : public RpmsgPlatform {
  public:
    static constexpr std::uint32_t kBase = kVring0.base;
    FakeLinux() : memory_(kVringBuffers.end() - kBase + 16) {
        table.vring[0] = {kVring0.base, kVringAlign, kVringNum, 0, 0};
        table.vring[1] = {kVring1.base, kVringAlign, kVringNum, 1, 0};
    }

    std::uint8_t* memory(std::uint64_t address, std::size_t size) override {
        for (const MemoryRange& range : {kVring0, kVring1, kVringBuffers})
            if (range.contains(address, size)) return at(static_cast<std::uint32_t>(address));
        return nullptr;
    }
    void notify(std::uint32_t id) override { notified.push_back(id); }
    std::size_t received(const Channel& c, std::uint32_t source, Bytes p) override {
        p = p.first(std::min(p.size(), takes));
        if (!p.empty()) messages.push_back({std::string(c.name), source, {p.begin(), p.end()}});
        return p.size();
    }
    void link_is_new() override { ++links; }
    std::uint8_t* at(std::uint32_t address) {
        auto start = (reinterpret_cast<std::uintptr_t>(memory_.data()) + 15) & ~std::uintptr_t{15};
        return reinterpret_cast<std::uint8_t*>(start) + (address - kBase);
    }

    void start(unsigned receive_buffers = 256) {
        receive = VringDriver(at(kVring0.base), {kVringNum, kVringAlign});
        transmit = VringDriver(at(kVring1.base), {kVringNum, kVringAlign});
        receive.clear();
        transmit.clear();
        transmit.suppress_interrupts(true);
        for (std::uint16_t i = 0; i < receive_buffers; ++i)
            receive.offer(i, kVringBuffers.base + 512u * i, 512, kDescWrite);
        sent_ = 0;
        table.vdev.status = 7;
    }
    void stop() { table.vdev.status = 0; }

    void say(std::uint32_t source, std::uint32_t destination, std::string_view text) {
        const std::uint16_t id = sent_++ % 256;
        const std::uint32_t address = kVringBuffers.base + 512u * (256u + id);
        RpmsgHeader{source, destination, static_cast<std::uint16_t>(text.size())}.write(at(address));
        std::memcpy(at(address) + 16, text.data(), text.size());
        transmit.offer(id, address, static_cast<std::uint32_t>(16 + text.size()), 0);
    }
    std::optional<std::pair<RpmsgHeader, Bytes>> hear() {
        const auto used = receive.take_used();
        if (!used) return std::nullopt;
        const std::uint8_t* p = at(kVringBuffers.base + 512 * used->id);
        const auto header = RpmsgHeader::read(p);
        EXPECT_EQ(used->length, 16u + header.length);
        return std::pair{header, Bytes(p + 16, header.length)};
    }

    FirmwareResourceTable table{};
    VringDriver receive, transmit;
    std::vector<std::uint32_t> notified;
    std::vector<Received> messages;
    std::size_t takes = SIZE_MAX;  ///< of each message handed over
    int links = 0;

  private:
    std::vector<std::uint8_t> memory_;
    std::uint16_t sent_ = 0;
};

constexpr Channel kChannels[] = {{"rpmsg-tty", 0x400}, {"rpmsg-virtual-tty-channel-1", 0x1E}};

class RpmsgDeviceTest : public testing::Test {
  protected:
    void expect_announcements() {
        for (const Channel& channel : kChannels) {
            const auto heard = linux_.hear();
            ASSERT_TRUE(heard);
            EXPECT_EQ(heard->first.destination, kNameServiceAddress);
            const auto message = NameServiceMessage::read(heard->second).value();
            EXPECT_EQ(message.name, channel.name);
            EXPECT_EQ(message.address, channel.address);
            EXPECT_FALSE(message.destroy);
        }
        EXPECT_FALSE(linux_.hear()) << "nothing unsolicited but the announcements";
    }

    FakeLinux linux_;
    RpmsgDevice device_{&linux_.table, kChannels, linux_};
};

TEST_F(RpmsgDeviceTest, WaitsForTheDriver) {
    linux_.table.vdev.status = 3;
    device_.service();
    EXPECT_FALSE(device_.ready());
    EXPECT_FALSE(device_.send(0x400, 0x401, {}));
    linux_.start();
    device_.service();
    EXPECT_TRUE(device_.ready());
    expect_announcements();
}

TEST_F(RpmsgDeviceTest, AnnouncesAgainAfterEachRestart) {
    for (int round = 0; round < 5; ++round) {
        linux_.start();
        device_.service();
        expect_announcements();
        linux_.say(0x401, 0x400, "RUN\n");
        device_.service();
        ASSERT_EQ(linux_.messages.size(), 1u);
        EXPECT_EQ(linux_.messages[0].text, "RUN\n");
        linux_.messages.clear();
        linux_.stop();
        device_.service();
        EXPECT_FALSE(device_.ready());
    }
}

TEST_F(RpmsgDeviceTest, RestartThatNobodySawIsNoticedByTheEmptyRing) {
    linux_.start();
    device_.service();
    expect_announcements();
    linux_.start();  // the driver was unbound and bound between two looks at its status
    device_.service();
    expect_announcements();
    linux_.say(0x401, 0x400, "PING\n");
    device_.service();
    ASSERT_EQ(linux_.messages.size(), 1u);
}

TEST_F(RpmsgDeviceTest, AnswersTravelToTheSourceAndNotifyLinux) {
    linux_.start();
    device_.service();
    expect_announcements();
    linux_.notified.clear();
    const std::uint8_t pong[] = {'P', 'O', 'N', 'G'};
    ASSERT_TRUE(device_.send(0x400, 0x401, pong));
    EXPECT_EQ(linux_.notified, std::vector<std::uint32_t>{0});
    const auto heard = linux_.hear();
    EXPECT_EQ(heard->first.source, 0x400u);
    EXPECT_EQ(heard->first.destination, 0x401u);
    EXPECT_EQ(heard->second.size(), 4u);
}

TEST_F(RpmsgDeviceTest, GoesOnWhereBuffersRanOut) {
    linux_.start(1);  // room for one announcement
    device_.service();
    EXPECT_FALSE(device_.ready());
    ASSERT_TRUE(linux_.hear());
    device_.service();
    EXPECT_FALSE(device_.ready());
    linux_.receive.offer(0, kVringBuffers.base, 512, kDescWrite);
    device_.service();
    EXPECT_TRUE(device_.ready());
    EXPECT_FALSE(device_.send(0x400, 0x401, {})) << "the ring is full";
}

TEST_F(RpmsgDeviceTest, RingWrapsWithoutLosingAMessage) {
    linux_.start();
    device_.service();
    expect_announcements();
    for (int i = 0; i < 70000; ++i) {  // past the wrap of the 16-bit indexes
        linux_.say(0x401, 0x400, std::to_string(i));
        device_.service();
        const auto used = linux_.transmit.take_used();
        ASSERT_TRUE(used);
        ASSERT_EQ(used->id, static_cast<unsigned>(i) % 256);
        ASSERT_FALSE(linux_.transmit.take_used()) << "given back once, after " << i;
        ASSERT_EQ(linux_.messages.size(), 1u);
        ASSERT_EQ(linux_.messages[0].text, std::to_string(i));
        linux_.messages.clear();
    }
}

TEST_F(RpmsgDeviceTest, WhatIsNotTakenIsHandedOverAgainBeforeAnythingElse) {
    linux_.start();
    device_.service();
    expect_announcements();
    linux_.takes = 2;
    linux_.say(0x401, 0x400, "abcdef");
    linux_.say(0x402, 0x400, "gh");
    linux_.takes = 0;
    device_.service();
    EXPECT_TRUE(linux_.messages.empty());
    ASSERT_TRUE(linux_.transmit.take_used()) << "the first is copied, its buffer is free";
    EXPECT_FALSE(linux_.transmit.take_used()) << "the second stays on the ring";
    linux_.takes = 4;
    for (int i = 0; i < 3; ++i) device_.service();
    ASSERT_EQ(linux_.messages.size(), 3u);
    EXPECT_EQ(linux_.messages[0].text, "abcd");
    EXPECT_EQ(linux_.messages[1].text, "ef");
    EXPECT_EQ(linux_.messages[2].text, "gh");
    EXPECT_EQ(linux_.messages[2].source, 0x402u);
}

TEST_F(RpmsgDeviceTest, WhatWasNotTakenBelongsToItsLink) {
    linux_.start();
    device_.service();
    linux_.takes = 0;
    linux_.say(0x401, 0x400, "of the first link");
    device_.service();
    linux_.start();
    linux_.takes = SIZE_MAX;
    linux_.say(0x401, 0x400, "of the second");
    device_.service();
    EXPECT_EQ(linux_.links, 2);
    ASSERT_EQ(linux_.messages.size(), 1u);
    EXPECT_EQ(linux_.messages[0].text, "of the second");
}

TEST_F(RpmsgDeviceTest, NonsenseDescriptorsAreIgnored) {
    linux_.start();
    device_.service();
    // What would be found there looks like a message.
    for (const std::uint32_t address : {kVringBuffers.base, kVringBuffers.end() - 64})
        RpmsgHeader{0x401, 0x400, 8}.write(linux_.at(address));
    linux_.transmit.offer(200, 0x80000000, 64, 0);                 // not the link's memory
    linux_.transmit.offer(201, kVringBuffers.base, 100000, 0);     // longer than a buffer
    linux_.transmit.offer(202, kVringBuffers.end() - 64, 100, 0);  // crosses the end
    linux_.transmit.offer(203, kVringBuffers.base, 3, 0);          // no header
    linux_.say(0x401, 0x77, "to nobody");
    linux_.say(0x401, 0x400, "still here");
    device_.service();
    ASSERT_EQ(linux_.messages.size(), 1u);
    EXPECT_EQ(linux_.messages[0].text, "still here");
}

TEST_F(RpmsgDeviceTest, HeaderLengthBeyondTheBufferIsCut) {
    linux_.start();
    device_.service();
    const std::uint32_t address = kVringBuffers.base + 512 * 300;
    RpmsgHeader{0x401, 0x400, 0xFFFF}.write(linux_.at(address));
    linux_.transmit.offer(9, address, 20, 0);
    device_.service();
    ASSERT_EQ(linux_.messages.size(), 1u);
    EXPECT_EQ(linux_.messages[0].text.size(), 4u);
}

TEST_F(RpmsgDeviceTest, RingsElsewhereAreRefused) {
    linux_.start();
    linux_.table.vring[0].da = 0x20000000;
    device_.service();
    EXPECT_FALSE(device_.ready());
    linux_.table.vring[0].da = kVring0.base;
    linux_.table.vring[0].num = 3;
    device_.service();
    EXPECT_FALSE(device_.ready());
}

}  // namespace
}  // namespace talpa::link
