#include "npu_model/strict/hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu/encoder.h"
#include "npu/host/streams_for_test.h"
#include "npu/host/vector_sink.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/small_program_for_test.h"
#include "npu_model/strict/footprint.h"

namespace talpa::npu_model {
namespace {

using npu::Operation;
using npu::OpKind;

std::string texts(const std::vector<Hazard>& hazards) {
    std::string all;
    for (const Hazard& h : hazards) all += "\n" + h.text;
    return all;
}

void expect_clean(const std::vector<npu::testing::FoundStream>& streams) {
    for (const auto& s : streams) {
        const auto payload = s.parsed();
        HazardOptions options;
        options.hardware = npu::find_hardware(payload.config);
        const auto hazards = find_hazards(payload.stream, options);
        ASSERT_TRUE(hazards) << s.name;
        EXPECT_EQ(texts(*hazards), "") << s.name;
    }
}

TEST(Hazards, EveryGoldenStreamIsSafe) {
    const auto streams = npu::testing::golden_streams();
    EXPECT_GT(streams.size(), 60u);
    expect_clean(streams);
}

TEST(Hazards, WholeNetworksAreSafe) {
    TALPA_NEEDS_REFERENCE();
    expect_clean(npu::testing::streams_under(reference / "models"));
}

void expect_reads_written(const std::filesystem::path& folder, unsigned at_least) {
    unsigned looked = 0;
    Effort most = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".pte" || entry.path().stem() == "two_u85") continue;
        for (const auto& delegate : testing::delegates_in(host::read_file(entry.path()).value())) {
            HazardOptions options;
            options.hardware = npu::find_hardware(delegate.payload().config);
            options.initialised.emplace();
            for (const auto& in : delegate.inputs())
                options.initialised->push_back({static_cast<std::uint8_t>(in.region), {in.offset, in.size_bytes}});
            Effort spent = 0;
            options.spent = &spent;
            EXPECT_EQ(texts(find_hazards(delegate.payload().stream, options).value()), "") << entry.path();
            if (spent > most) most = spent;
            ++looked;
            // Without its inputs a program reads what nobody wrote.
            options.initialised.emplace();
            EXPECT_NE(texts(find_hazards(delegate.payload().stream, options).value()), "") << entry.path();
        }
    }
    EXPECT_GE(looked, at_least);
    std::printf("the most expensive stream takes %lld of the effort of %lld\n", static_cast<long long>(most),
                static_cast<long long>(kDefaultEffort));
    EXPECT_LT(most, kDefaultEffort / 4) << "real streams must be compared exactly";
}

TEST(Hazards, GoldenProgramsReadOnlyWhatWasWritten) {
    expect_reads_written(talpa::testing::golden_folder(), 60);
}

TEST(Hazards, WholeNetworksReadOnlyWhatWasWritten) {
    TALPA_NEEDS_REFERENCE();
    expect_reads_written(reference / "models", 6);
}

// ---- Streams with something taken away. Whether that does harm is decided here a second time, in another way: by the
// bytes of every element (the address formula alone) and by counting, for each pair of operations, what stands between
// them.

struct Edited {
    std::vector<std::uint32_t> words;
    std::vector<Operation> ops;
};

Edited decoded(std::vector<std::uint32_t> words) {
    Edited e{std::move(words), {}};
    npu::Decoder decoder{e.words};
    while (true) {
        const auto op = decoder.next().value();
        if (!op) return e;
        e.ops.push_back(*op);
    }
}

std::vector<std::uint32_t> without_word(npu::Words words, std::uint32_t offset_bytes) {
    std::vector<std::uint32_t> rest(words.begin(), words.end());
    rest.erase(rest.begin() + offset_bytes / 4);
    return rest;
}

class ByteSets {
  public:
    /// Addresses with the space (region, or 8 for the shared RAM) above bit 48.
    std::vector<std::uint64_t> reads, writes;

    explicit ByteSets(const Operation& op, std::int64_t lut_base) {
        if (op.kind == OpKind::Dma) {
            range(reads, op.dma.src_internal ? 8 : op.dma.src_region, op.dma.src, op.dma.length);
            range(writes, op.dma.dst_internal ? 8 : op.dma.dst_region, op.dma.dst, op.dma.length);
        } else {
            map(reads, op.ifm);
            if (npu::has_ifm2(op.kind) && !op.ifm2_is_scalar) map(reads, op.ifm2);
            map(writes, op.ofm);
            if (npu::has_weights(op.kind)) {
                range(reads, op.weight_region, op.weights[0].offset, op.weights[0].size);
                range(reads, op.scale_region, op.scales[0].offset, op.scales[0].size);
            }
            if (op.activation.function == npu::Activation::Function::Lut)  // all golden tables have 256 bytes
                range(reads, 8, static_cast<std::uint64_t>(lut_base) + 256u * op.activation.lut_slot, 256);
        }
        std::sort(reads.begin(), reads.end());
        std::sort(writes.begin(), writes.end());
    }
    static bool meet(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
        for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
            if (a[i] == b[j]) return true;
            a[i] < b[j] ? ++i : ++j;
        }
        return false;
    }
    [[nodiscard]] bool conflicts(const ByteSets& o) const {
        return meet(writes, o.reads) || meet(reads, o.writes) || meet(writes, o.writes);
    }

  private:
    static void range(std::vector<std::uint64_t>& to, std::uint64_t space, std::uint64_t begin, std::uint64_t size) {
        for (std::uint64_t i = 0; i < size; ++i) to.push_back(space << 48 | (begin + i));
    }
    static void map(std::vector<std::uint64_t>& to, const npu::FeatureMap& fm) {
        for (std::uint32_t y = 0; y < fm.height; ++y)
            for (std::uint32_t x = 0; x < fm.width; ++x)
                for (std::uint32_t c = 0; c < fm.depth; ++c)
                    range(to, fm.region, static_cast<std::uint64_t>(fm.offset_of(y, x, c)), fm.type.bytes);
    }
};

enum class Class { Dma, Kernel, Other };
Class class_of(const Operation& op) {
    return op.kind == OpKind::Dma ? Class::Dma : npu::is_kernel(op.kind) ? Class::Kernel : Class::Other;
}

// Must operation i have finished when operation j is issued, whatever the timing?
bool finished(const std::vector<Operation>& ops, std::size_t i, std::size_t j, const npu::Hardware& hardware) {
    const Class own = class_of(ops[i]);
    const unsigned depth = own == Class::Dma ? hardware.max_dmas : 2;
    unsigned later = 0;  // of the same class
    for (std::size_t c = i + 1; c <= j; ++c) {
        if (class_of(ops[c]) == own && ++later >= depth) return true;
        const bool waits = ops[c].kind == (own == Class::Dma ? OpKind::DmaWait : OpKind::KernelWait);
        if (waits && later >= ops[c].parameter) return true;
    }
    return false;
}

class Oracle {
  public:
    Oracle(const std::vector<Operation>& ops, const npu::Hardware& hardware) : ops_(ops), hardware_(hardware) {
        bytes_.resize(ops.size());
    }
    /// May two operations that are not both kernels meet, if operation `gone` is taken away?
    bool harmful(std::size_t gone = SIZE_MAX) {
        std::vector<Operation> ops = ops_;
        if (gone < ops.size()) ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(gone));
        const auto own = [&](std::size_t i) { return i < gone ? i : i + 1; };
        for (std::size_t j = 0; j < ops.size(); ++j)
            for (std::size_t i = j; i-- > 0 && i + 40 > j;) {  // nothing is in flight for as long as 40 commands
                if (class_of(ops[i]) == Class::Other || class_of(ops[j]) == Class::Other) continue;
                if (class_of(ops[i]) == Class::Kernel && class_of(ops[j]) == Class::Kernel) continue;
                if (!finished(ops, i, j, hardware_) && conflict(own(i), own(j))) return true;
            }
        return false;
    }

  private:
    bool conflict(std::size_t i, std::size_t j) {
        const auto [it, fresh] = known_.try_emplace({i, j});
        if (fresh) it->second = bytes_of(i).conflicts(bytes_of(j));
        return it->second;
    }
    const ByteSets& bytes_of(std::size_t i) {
        if (!bytes_[i]) bytes_[i].emplace(ops_[i], hardware_.lut_base());
        return *bytes_[i];
    }
    const std::vector<Operation>& ops_;
    const npu::Hardware& hardware_;
    std::vector<std::optional<ByteSets>> bytes_;
    std::map<std::pair<std::size_t, std::size_t>, bool> known_;
};

TEST(Hazards, EachWaitTakenAwayIsMissedExactlyWhereBytesAreInDispute) {
    unsigned waits = 0, found = 0;
    for (const auto& s : npu::testing::golden_streams()) {
        const auto payload = s.parsed();
        const npu::Hardware& hardware = *npu::find_hardware(payload.config);
        const Edited whole = decoded({payload.stream.begin(), payload.stream.end()});
        Oracle oracle(whole.ops, hardware);
        for (std::size_t i = 0; i < whole.ops.size(); ++i) {
            if (whole.ops[i].kind != OpKind::DmaWait && whole.ops[i].kind != OpKind::KernelWait) continue;
            HazardOptions options;
            options.hardware = &hardware;
            const auto cut = without_word(payload.stream, whole.ops[i].offset_bytes);
            const auto hazards = find_hazards(cut, options).value();
            EXPECT_EQ(!hazards.empty(), oracle.harmful(i))
                << s.name << " offset " << whole.ops[i].offset_bytes << texts(hazards);
            for (const Hazard& h : hazards)
                EXPECT_TRUE(h.kind == Hazard::Kind::MissingDmaWait || h.kind == Hazard::Kind::MissingKernelWait)
                    << h.text;
            ++waits;
            found += hazards.empty() ? 0 : 1;
        }
    }
    std::printf("%u waits taken away one by one, %u of them missed\n", waits, found);
    EXPECT_GT(found, 100u);
}

// KERNEL_WAIT and DMA_WAIT that let one operation more run than the compiler allowed.
TEST(Hazards, EachWaitRelaxedByOneIsFoundExactlyWhereBytesAreInDispute) {
    unsigned waits = 0, found = 0;
    for (const auto& s : npu::testing::golden_streams()) {
        const auto payload = s.parsed();
        HazardOptions options;
        options.hardware = npu::find_hardware(payload.config);
        const Edited whole = decoded({payload.stream.begin(), payload.stream.end()});
        for (std::size_t i = 0; i < whole.ops.size(); ++i) {
            if (whole.ops[i].kind != OpKind::DmaWait && whole.ops[i].kind != OpKind::KernelWait) continue;
            Edited relaxed = whole;
            ++relaxed.ops[i].parameter;
            relaxed.words[relaxed.ops[i].offset_bytes / 4] += 1u << 16;
            Oracle oracle(relaxed.ops, *options.hardware);
            const auto hazards = find_hazards(relaxed.words, options).value();
            EXPECT_EQ(!hazards.empty(), oracle.harmful())
                << s.name << " offset " << whole.ops[i].offset_bytes << texts(hazards);
            ++waits;
            found += hazards.empty() ? 0 : 1;
        }
    }
    std::printf("%u waits relaxed by one, %u of them found\n", waits, found);
    EXPECT_GT(found, 50u);
}

// With waits of ours before every third operation some of the compiler's are no longer needed: taking those away is no
// fault.
TEST(Hazards, WaitsThatOthersMakeRedundantAreNotMissed) {
    unsigned waits = 0, found = 0;
    for (const auto& s : npu::testing::golden_streams()) {
        const auto payload = s.parsed();
        HazardOptions options;
        options.hardware = npu::find_hardware(payload.config);
        const Edited original = decoded({payload.stream.begin(), payload.stream.end()});
        std::vector<std::uint32_t> words = original.words;
        for (std::size_t i = original.ops.size(); i-- > 0;) {
            const auto wait = static_cast<std::uint32_t>(i % 2 != 0 ? npu::Op::KERNEL_WAIT : npu::Op::DMA_WAIT);
            if (i % 3 == 0) words.insert(words.begin() + original.ops[i].offset_bytes / 4, wait);
        }
        const Edited whole = decoded(words);
        for (std::size_t i = 0; i < whole.ops.size(); ++i) {
            if (whole.ops[i].kind != OpKind::DmaWait && whole.ops[i].kind != OpKind::KernelWait) continue;
            const auto hazards = find_hazards(without_word(whole.words, whole.ops[i].offset_bytes), options).value();
            Oracle oracle(whole.ops, *options.hardware);
            EXPECT_EQ(!hazards.empty(), oracle.harmful(i)) << s.name << " wait " << i << texts(hazards);
            ++waits;
            found += hazards.empty() ? 0 : 1;
            if (waits % 8 == 0) i += 40;  // long rows of copies have nothing new to tell
        }
    }
    std::printf("%u waits taken away among redundant ones, %u of them missed\n", waits, found);
    EXPECT_GT(found, 20u);
    EXPECT_LT(found + 500, waits);
}

// The operation's BLOCKDEP set to `value`, and back after it.
std::vector<std::uint32_t> with_block_dependency(npu::Words words, const Operation& op, unsigned value) {
    std::vector<std::uint32_t> edited(words.begin(), words.end());
    const auto set = [](unsigned v) { return static_cast<std::uint32_t>(npu::Cmd0::BLOCKDEP) | v << 16; };
    const auto at = edited.begin() + op.offset_bytes / 4;
    const auto after = edited.insert(at + 1, set(op.blockdep));
    edited.insert(after - 1, set(value));
    return edited;
}

TEST(Hazards, ATooLargeBlockDependencyIsFound) {
    unsigned tight = 0, tight_found = 0, zero = 0, zero_found = 0, without_dispute = 0, zeros = 0;
    for (const auto& s : npu::testing::golden_streams()) {
        const auto payload = s.parsed();
        HazardOptions options;
        options.hardware = npu::find_hardware(payload.config);
        const Edited whole = decoded({payload.stream.begin(), payload.stream.end()});
        const Operation* previous = nullptr;
        for (const Operation& op : whole.ops) {
            if (!npu::is_kernel(op.kind)) continue;
            const Operation* const before = previous;
            previous = &op;
            if (before == nullptr || op.blockdep == 3) continue;
            if (op.blockdep == 0 && ++zeros % 4 != 0) continue;  // thousands of copies that differ only in their place
            // The compiler's own value, where it is 1 or 2, is the largest that it takes for safe; 0 may mean many
            // things.
            const unsigned value = op.blockdep == 0 ? 3 : op.blockdep + 1u;
            const auto hazards = find_hazards(with_block_dependency(payload.stream, op, value), options).value();
            const bool is_found = !hazards.empty();
            for (const Hazard& h : hazards) EXPECT_EQ(h.kind, Hazard::Kind::BlockDependency) << h.text;
            if (op.blockdep != 0) {
                ++tight;
                tight_found += is_found ? 1 : 0;
                EXPECT_TRUE(is_found) << s.name << " offset " << op.offset_bytes;
                continue;
            }
            const ByteSets mine(op, options.hardware->lut_base()), theirs(*before, options.hardware->lut_base());
            const bool dispute = ByteSets::meet(mine.reads, theirs.writes);
            ++zero;
            zero_found += is_found ? 1 : 0;
            without_dispute += dispute ? 0 : 1;
            if (!dispute) {
                EXPECT_FALSE(is_found) << s.name << " offset " << op.offset_bytes << texts(hazards);
            }
        }
    }
    std::printf(
        "BLOCKDEP 1 or 2 raised by one: %u, found %u; 0 raised to 3: %u, found %u, of the others %u read nothing that "
        "the previous one writes\n",
        tight, tight_found, zero, zero_found, without_dispute);
    EXPECT_GT(tight, 15u);
    // All but those whose first blocks read nothing of the last three blocks before them.
    EXPECT_GE(zero_found * 10, (zero - without_dispute) * 8);
}

TEST(Hazards, ATooLargeBlockDependencyOfWholeNetworksIsFound) {
    TALPA_NEEDS_REFERENCE();
    unsigned tight = 0, found = 0;
    for (const auto& s : npu::testing::streams_under(reference / "models")) {
        const auto words = s.parsed().stream;
        for (const Operation& op : decoded({words.begin(), words.end()}).ops) {
            if (!npu::is_kernel(op.kind) || op.blockdep == 0 || op.blockdep == 3) continue;
            ++tight;
            found += find_hazards(with_block_dependency(words, op, op.blockdep + 1u)).value().empty() ? 0 : 1;
        }
    }
    std::printf("BLOCKDEP 1 or 2 raised by one: %u, found %u\n", tight, found);
    // One is 1 although the two maps have no byte in common (mobilenet_v2_sram384, offset 16296).
    EXPECT_GT(tight, 70u);
    EXPECT_EQ(found, tight - 1);
}

TEST(Hazards, ARegisterThatWasNeverSetIsNamed) {
    const auto stream =
        npu::testing::streams_in_file(talpa::testing::golden_folder() / "ops/conv1x1/conv1x1.pte").at(0);
    const auto words = stream.parsed().stream;
    npu::CommandReader reader{words};
    while (const auto command = reader.next().value()) {
        if (command->has_payload || static_cast<npu::Cmd0>(command->code) != npu::Cmd0::ACC_FORMAT) continue;
        const auto hazards = find_hazards(without_word(words, command->offset_bytes)).value();
        ASSERT_FALSE(hazards.empty());
        EXPECT_EQ(hazards[0].kind, Hazard::Kind::UnsetRegister);
        EXPECT_THAT(hazards[0].text, ::testing::HasSubstr(" uses ACC_FORMAT, which the stream has not set"));
        return;
    }
    FAIL() << "the stream has no ACC_FORMAT";
}

TEST(Hazards, ALayoutThatDoesNotFitItsBlockIsIllegal) {
    const auto stream =
        npu::testing::streams_in_file(talpa::testing::golden_folder() / "ops/conv1x1/conv1x1.pte").at(0);
    std::vector<std::uint32_t> words(stream.parsed().stream.begin(), stream.parsed().stream.end());
    for (std::uint32_t& word : words)
        if ((word & 0xFFFF) == static_cast<std::uint32_t>(npu::Cmd0::AB_START)) word += 1u << 16;
    const auto hazards = find_hazards(words).value();
    ASSERT_FALSE(hazards.empty());
    EXPECT_EQ(hazards[0].kind, Hazard::Kind::IllegalOperation);
}

// A result may lie where an operand is, element on element, and nowhere else over what the operation reads.
TEST(Hazards, AResultOverItsOwnOperandMustLieElementOnElement) {
    const auto found = [](OpKind kind, std::uint64_t at, std::int64_t more_stride) {
        testing::SmallProgram program;
        program.operations = {testing::simple_operation(kind)};
        Operation& op = program.operations[0];
        if (kind == OpKind::MaxPool) {
            op.kernel.height = op.kernel.width = 2;
            op.ofm = testing::dense_map(3, 3, 8, testing::kInt8);
        }
        op.ofm.base[0] = at;
        op.ofm.stride_y += more_stride;
        const npu::Job job = program.job();
        bool overlaps = false;
        for (const Hazard& h : find_hazards(job.stream).value()) overlaps |= h.kind == Hazard::Kind::OverlapsItself;
        return overlaps;
    };
    EXPECT_FALSE(found(OpKind::Add, 2048, 0));
    EXPECT_FALSE(found(OpKind::Add, 0, 0)) << "in the place of the first operand";
    EXPECT_FALSE(found(OpKind::Add, 1024, 0)) << "of the second";
    EXPECT_TRUE(found(OpKind::Add, 32, 0)) << "a row further";
    EXPECT_TRUE(found(OpKind::Add, 0, 32)) << "rows further apart";
    EXPECT_TRUE(found(OpKind::MaxPool, 0, 0)) << "whose windows are read again";
}

// On a U55 the second DMA waits for the first by itself; on a U65 both are under way.
TEST(Hazards, TheU65HasTwoDmasOutstandingAndTheU55One) {
    const auto cmd0 = [](auto code, unsigned parameter) { return static_cast<std::uint32_t>(code) | parameter << 16; };
    const auto cmd1 = [&](npu::Cmd1 code) { return cmd0(code, 0) | 0x4000; };
    const std::vector<std::uint32_t> words{cmd0(npu::Cmd0::DMA0_SRC_REGION, 0),
                                           cmd0(npu::Cmd0::DMA0_DST_REGION, 1),
                                           cmd1(npu::Cmd1::DMA0_SRC),
                                           0,
                                           cmd1(npu::Cmd1::DMA0_DST),
                                           0,
                                           cmd1(npu::Cmd1::DMA0_LEN),
                                           64,
                                           cmd0(npu::Op::DMA_START, 0),
                                           cmd1(npu::Cmd1::DMA0_DST),
                                           48,
                                           cmd0(npu::Op::DMA_START, 0),
                                           cmd0(npu::Op::STOP, 0xFFFF)};
    const auto on_u65 = find_hazards(words).value();
    ASSERT_EQ(on_u65.size(), 1u);
    EXPECT_EQ(on_u65[0].text,
              "command stream offset 44: DMA writes its DMA destination at 0x30..0x40 of region 1, where DMA at offset "
              "32 may still write its DMA "
              "destination: DMA_WAIT is missing");
    HazardOptions options;
    options.hardware = npu::find_hardware(0x00001807);
    EXPECT_EQ(texts(find_hazards(words, options).value()), "");
}

TEST(Hazards, AnUndecodableStreamIsAnError) {
    const std::vector<std::uint32_t> words{7};
    EXPECT_EQ(find_hazards(words).error().code, ErrorCode::CommandStream);
}

// Operations over maps of a million runs of one byte each: exact to the end it would take minutes.
TEST(Hazards, AStreamMadeToBeExpensiveEndsSoon) {
    npu::VectorSink sink;
    npu::StreamWriter writer(sink, npu::Product::EthosU65);
    Operation op = testing::simple_operation(OpKind::Add, 1000, 1000, 1);
    for (npu::FeatureMap* fm : {&op.ifm, &op.ifm2, &op.ofm}) fm->stride_x = 32, fm->stride_y = 32'000;
    for (unsigned i = 0; i < 100; ++i) {
        op.ofm.base[0] = 16 * i;
        ASSERT_TRUE(writer.emit(op));
    }
    op = {};
    ASSERT_TRUE(writer.emit(op));
    HazardOptions options;
    Effort spent = 0;
    options.spent = &spent;
    options.initialised = {{.region = 1, .range = {0, 1 << 30}}};
    ASSERT_TRUE(find_hazards(sink.words, options));
    EXPECT_LE(spent, kDefaultEffort);
    EXPECT_GT(spent, kDefaultEffort / 2) << "the stream is not expensive enough to show anything";
}

TEST(IntervalSet, KeepsDisjointIntervals) {
    IntervalSet set;
    set.add({10, 20});
    set.add({30, 40});
    EXPECT_EQ(set.first_gap({12, 35}), (npu::Extent{20, 30}));
    EXPECT_EQ(set.first_gap({5, 15}), (npu::Extent{5, 10}));
    EXPECT_EQ(set.first_gap({35, 50}), (npu::Extent{40, 50}));
    EXPECT_EQ(set.first_gap({12, 20}), std::nullopt);
    set.add({20, 30});
    EXPECT_EQ(set.size(), 1u);
    set.remove({15, 35});
    EXPECT_EQ(set.first_gap({10, 40}), (npu::Extent{15, 35}));
    EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace talpa::npu_model
