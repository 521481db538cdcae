#include "board/host/board.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/host/json.h"
#include "board/linux/address_map.h"
#include "board/linux/elf_image.h"
#include "board/sysfs/device_tree.h"
#include "board/sysfs/remoteproc_files.h"
#include "link/memory_map.h"
#include "link/reserved_memory.h"
#include "link/resource_table.h"

namespace talpa::board {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {
/// Below /sys only because it must be served: /dev/mem points to it where the kernel would refuse.
constexpr const char* kRefusedMemory = ".mem";
}  // namespace

std::string memory_device(unsigned index) {
    return index == 0 ? "mem" : fmt::format("mem{}", index);
}

Board::Board(const BoardOptions& options, BoardPlaces places, KernelLog& log)
    : options_(options),
      places_(std::move(places)),
      log_(log),
      firmware_(places_.root == "/" ? fs::path() : places_.root, options.kernel == KernelProfile::Legacy) {}

host::Result<std::unique_ptr<Board>> Board::create(const BoardOptions& options, const BoardPlaces& places,
                                                   KernelLog& log) {
    std::unique_ptr<Board> board(new Board(options, places, log));
    TRY(board->wire());
    return board;
}

host::Result<void> Board::wire() {
    ttys_.changed = [this](int number, const std::string& slave, bool present) { tty_changed(number, slave, present); };
    TRY(make_devices());
    for (unsigned k = 0; k < options_.remoteprocs; ++k) TRY(add_processor(k));
    memory_watch_.begin();

    std::vector<const Remoteproc*> all;
    for (unsigned k = 0; k < options_.remoteprocs; ++k) {
        add_remoteproc_files(tree_, k, *processors_[k]->linux,
                             [this](std::string_view device) { return ttys_.number_of(device); });
        all.push_back(processors_[k]->linux.get());
    }
    add_bus_files(tree_, all);
    tree_.folder("class/devcoredump").dynamic = [this] { return dumps_.files(); };
    if (options_.lacks(Without::IomemRelaxed)) tree_.add(kRefusedMemory, refused_file(EPERM));
    tree_.add("module/firmware_class/parameters/path",
              attribute([this] { return firmware_.read_path(); },
                        [this](std::string_view text) { return firmware_.write_path(text); }));
    DeviceTreeOptions device_tree;
    device_tree.model_region = !options_.lacks(Without::ReservedMemory);
    device_tree.ethosu_no_map = !options_.lacks(Without::EthosuRegion);
    device_tree.cm33_power_domain = !options_.lacks(Without::PowerDomain);
    device_tree.iomem_relaxed = !options_.lacks(Without::IomemRelaxed);
    device_tree.mcore_booted = !options_.lacks(Without::McoreBooted);
    device_tree.ethosu = !options_.lacks(Without::EthosuDevice);
    device_tree.startup_delay_ms = options_.startup_delay_ms;
    const DeviceTreeNode root = imx93_device_tree(device_tree);
    tree_.add("firmware/devicetree/base", device_tree_files(root));
    tree_.add("firmware/fdt", bytes_file(flatten(root), 0400));
    TRY_ASSIGN(server_, FuseServer::mount(tree_, places_.sys, &tracer_));
    return {};
}

Board::Processor::~Processor() {
    {
        const std::lock_guard lock(mutex);
        ending = true;
    }
    changed.notify_all();
    if (reporter.joinable()) reporter.join();
    linux.reset();  // its core stops before the machine goes
}

Board::~Board() {
    server_.reset();  // no more writes from outside
    processors_.clear();
    for (unsigned k = 0; k < options_.remoteprocs; ++k) remove(places_.dev / memory_device(k));
    remove(places_.dev / "ethosu0");
}

host::Result<void> Board::add_processor(unsigned index) {
    auto processor = std::make_unique<Processor>();
    MachineOptions machine;
    // An i.MX 93 has one M33. Another is the M33 of another chip: its firmware uses the same addresses, so its TCM, DDR
    // and NPU are its own.
    if (!options_.lacks(Without::Devmem) && !options_.lacks(Without::IomemRelaxed))
        machine.memory_file = places_.dev / memory_device(index);
    machine.npu_threads = options_.npu_threads;
    machine.npu_powered = !options_.lacks(Without::NpuClock) && !options_.lacks(Without::EthosuDevice);
    machine.mu_survives_stop = options_.has(Quirk::MuSurvivesStop);
    machine.npu_denied = options_.has(Quirk::TrdcDeny);
    machine.tcm_ecc = options_.has(Quirk::EccPoison);
    machine.tracer = &tracer_;
    if (options_.has(Quirk::FaultCrashes))
        machine.faulted = [p = processor.get()] {
            const std::lock_guard lock(p->mutex);
            p->faulted = true;
            p->changed.notify_all();
        };
    TRY_ASSIGN(processor->machine, Machine::create(machine, log_));
    if (!machine.memory_file.empty()) memory_watch_.add(machine.memory_file);

    RemoteprocConfig config;
    config.index = index;
    config.profile = options_.kernel;
    config.startup_delay_ms = options_.startup_delay_ms;
    config.table_copy_only = options_.has(Quirk::TableCopyOnly);
    config.tracer = &tracer_;
    config.dumped = [this](std::string core) { dumps_.add(std::move(core)); };
    if (options_.lacks(Without::PowerDomain))
        config.before_load = [this] { panic("SError Interrupt on CPU0, code 0xbf000002 -- SError: TCM has no power"); };
    if (options_.lacks(Without::McoreBooted))
        config.before_release = [this] { freeze("Linux gated clocks that the M33 uses"); };
    if (index == 0 && options_.has(Quirk::Attached)) {
        TRY(start_as_u_boot(*processor->machine));
        config.attached_at_probe = true;
    }
    const TtyFlavour flavour = options_.has(Quirk::NxpTty) ? TtyFlavour::Nxp : TtyFlavour::Mainline;
    const bool driver = !options_.lacks(Without::Rpmsg);
    // An M33 that runs already is heard before the constructor has ended.
    auto heard = std::make_shared<std::atomic<Remoteproc*>>(nullptr);
    processor->machine->on_mailbox([heard] {
        if (Remoteproc* const remoteproc = heard->load()) remoteproc->mailbox_received();
    });
    processor->linux = std::make_unique<Remoteproc>(
        config, processor->machine->memory(), *processor->machine, processor->machine->mailbox(),
        [this](const std::string& name) { return firmware_.find(name); }, log_,
        [this, flavour, driver, index](VirtioRpmsg& bus,
                                       const VirtioRpmsg::Channel& channel) -> std::unique_ptr<RpmsgChannelDriver> {
            if (!driver || !tty_serves(flavour, channel.name)) return nullptr;
            auto tty = RpmsgTty::create(bus, channel,
                                        {flavour, places_.ptmx, places_.slaves, &log_, channel.device(index)}, ttys_);
            if (tty) return std::move(*tty);
            log_.line("rpmsg_tty: {}", tty.error().message);
            return nullptr;
        });
    *heard = processor->linux.get();
    processor->linux->mailbox_received();  // what came meanwhile
    if (options_.has(Quirk::FaultCrashes))
        processor->reporter = std::thread([this, p = processor.get()] { report_faults(*p); });
    processors_.push_back(std::move(processor));
    return {};
}

// What the boot loader does with `bootaux`: segments to where they belong, then the core is released. Linux attaches
// when the firmware has put its resource table where it is looked for.
host::Result<void> Board::start_as_u_boot(Machine& machine) {
    const auto image = ElfImage::open(options_.boot_image);
    if (!image) return std::unexpected(host::Error(image.error()).with_context("the firmware that U-Boot starts"));
    for (const ElfSegment& segment : image->segments()) {
        const auto system = device_to_system(segment.physical_address, segment.memory_size, {});
        std::uint8_t* const to = system ? machine.memory().at(*system, segment.memory_size) : nullptr;
        if (to == nullptr)
            return host::failure(ErrorCode::InvalidProgram, "U-Boot cannot load {} bytes at {:#x}", segment.memory_size,
                                 segment.physical_address);
        std::memcpy(to, segment.data.data(), segment.data.size());
        std::memset(to + segment.data.size(), 0, segment.memory_size - segment.data.size());
        machine.loaded(*system, segment.memory_size);
    }
    constexpr std::uint32_t kLiveTable = link::kResourceTableNode.base;
    const std::uint8_t* const table = machine.memory().at(kLiveTable, link::kLiveResourceTable.size);
    machine.start(0);
    for (int i = 0; i < 2000; ++i) {
        if (link::check_resource_table({table, link::kLiveResourceTable.size})) return {};
        std::this_thread::sleep_for(1ms);
    }
    log_.line("board: the firmware that U-Boot started has no resource table at 0x{:x}", kLiveTable);
    return {};
}

void Board::report_faults(Processor& processor) {
    constexpr unsigned kFatalError = 2;
    std::unique_lock lock(processor.mutex);
    for (;;) {
        processor.changed.wait(lock, [&] { return processor.ending || processor.faulted; });
        if (processor.ending) return;
        processor.faulted = false;
        lock.unlock();
        processor.linux->report_crash(kFatalError);
        lock.lock();
    }
}

void Board::panic(const char* why) {
    log_.line("{}", why);
    log_.line("Kernel panic - not syncing: {}", why);
    places_.died(KernelDeath::Panicked);
}

// A kernel that stands still logs nothing: this line is the simulator's.
void Board::freeze(const char* why) {
    log_.line("board: frozen: {}", why);
    places_.died(KernelDeath::Froze);
}

// Only existence counts: opening it on the board can start the M33, and every ioctl here would be refused.
host::Result<void> Board::make_devices() {
    if (options_.lacks(Without::IomemRelaxed) && !options_.lacks(Without::Devmem)) {
        const fs::path target = (places_.sys / kRefusedMemory).lexically_relative(places_.dev);
        if (::symlink(target.c_str(), (places_.dev / "mem").c_str()) != 0)
            return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", (places_.dev / "mem").string(),
                                 std::strerror(errno));
    }
    if (options_.lacks(Without::EthosuDevice)) return {};
    const fs::path path = places_.dev / "ethosu0";
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) return {};
    // Users other than root cannot make devices.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", path.string(), std::strerror(errno));
    ::close(fd);
    return {};
}

void Board::tty_changed(int number, const std::string& slave, bool present) {
    const fs::path link = places_.dev / fmt::format("ttyRPMSG{}", number);
    remove(link);
    if (present && ::symlink(slave.c_str(), link.c_str()) != 0)
        log_.line("board: cannot make {}: {}", link.string(), std::strerror(errno));
}

void Board::remove(const fs::path& device) {
    std::error_code gone;
    fs::remove(device, gone);
}

std::string Board::status_json() const {
    const auto line = [](std::string text) {
        if (text.ends_with('\n')) text.pop_back();
        return text;
    };
    host::Json processors = host::Json::array();
    for (std::size_t k = 0; k < processors_.size(); ++k) {
        const Processor& p = *processors_[k];
        host::Json channels = host::Json::array();
        for (const auto& channel : p.linux->channels())
            channels.push_back({{"name", channel.name}, {"address", channel.remote}});
        processors.push_back({{"name", fmt::format("remoteproc{}", k)},
                              {"processor", line(p.linux->name())},
                              {"state", line(p.linux->read_state())},
                              {"firmware", line(p.linux->read_firmware())},
                              {"channels", std::move(channels)},
                              {"instructions", p.machine->instructions()}});
    }
    host::Json ttys = host::Json::array();
    for (const auto& [number, slave] : ttys_.ttys())
        ttys.push_back({{"device", fmt::format("/dev/ttyRPMSG{}", number)}, {"slave", slave}});
    return host::Json{{"remoteprocs", std::move(processors)}, {"ttys", std::move(ttys)}}.dump();
}

}  // namespace talpa::board
