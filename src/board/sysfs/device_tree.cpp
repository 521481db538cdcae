#include "board/sysfs/device_tree.h"

#include <fmt/format.h>

#include <initializer_list>
#include <map>

#include "link/reserved_memory.h"

namespace talpa::board {
namespace {

using namespace std::string_literals;

std::string cells(std::initializer_list<std::uint32_t> words) {
    std::string out;
    for (const std::uint32_t word : words)
        for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
    return out;
}

std::string strings(std::initializer_list<const char*> texts) {
    std::string out;
    for (const char* text : texts) out += text + "\0"s;
    return out;
}

/// Handles by which nodes point to each other.
enum Phandle : std::uint32_t {
    kClock = 2,
    kMailbox = 0x1d,
    kCm33Power = 0x20,
    kMlmixPower,
    kCm33,
    kEthosuRegion = 0x30,
    kVdevBuffer,
    kVring00,
    kVring01,
    kVring10,
    kVring11,
    kTable,
};

struct Reserved {
    link::ReservedMemoryNode node;
    std::uint32_t phandle;  ///< 0: none
};

constexpr Reserved kReserved[] = {
    {link::kResourceTableNode, kTable},
    {link::kVdev0Vring0Node, kVring00},
    {link::kVdev0Vring1Node, kVring01},
    {link::kVdev1Vring0Node, kVring10},
    {link::kVdev1Vring1Node, kVring11},
    {link::kVdevBufferNode, kVdevBuffer},
    {{"ele-reserved@a4120000", 0xA4120000, 0x100000, true}, 0},
    {{"optee_core@96000000", 0x96000000, 0x1E00000, false}, 0},
    {{"optee_shm@97e00000", 0x97E00000, 0x200000, false}, 0},
};

std::string reg_of(const link::ReservedMemoryNode& node) {
    return cells({0, node.base, 0, node.size});
}

DeviceTreeNode reserved_memory(const DeviceTreeOptions& options) {
    DeviceTreeNode node{
        "reserved-memory", {{"#address-cells", cells({2})}, {"#size-cells", cells({2})}, {"ranges", ""}}, {}};
    for (const auto& [reserved, phandle] : kReserved) {
        DeviceTreeNode child{reserved.name, {{"reg", reg_of(reserved)}, {"no-map", ""}}, {}};
        if (reserved.shared_pool)
            child.properties.insert(child.properties.begin(), {"compatible", strings({"shared-dma-pool"})});
        if (phandle != 0) child.properties.emplace_back("phandle", cells({phandle}));
        node.children.push_back(std::move(child));
    }
    node.children.push_back({link::kEthosuNode.name,
                             {{"compatible", strings({"shared-dma-pool"})},
                              {"reg", reg_of(link::kEthosuNode)},
                              {options.ethosu_no_map ? "no-map" : "reusable", ""},
                              {"phandle", cells({kEthosuRegion})}},
                             {}});
    if (options.model_region)
        node.children.push_back({link::kModelNode.name, {{"reg", reg_of(link::kModelNode)}, {"no-map", ""}}, {}});
    return node;
}

DeviceTreeNode remoteproc(const DeviceTreeOptions& options) {
    DeviceTreeNode node{"remoteproc-cm33",
                        {{"compatible", strings({"fsl,imx93-cm33"})},
                         {"clocks", cells({kClock, 0x52})},
                         {"mbox-names", strings({"tx", "rx", "rxdb"})},
                         {"mboxes", cells({kMailbox, 0, 1, kMailbox, 1, 1, kMailbox, 3, 1})},
                         {"memory-region", cells({kVdevBuffer, kVring00, kVring01, kVring10, kVring11, kTable})},
                         {"fsl,startup-delay-ms", cells({options.startup_delay_ms})},
                         {"status", strings({"okay"})},
                         {"phandle", cells({kCm33})}},
                        {}};
    if (options.cm33_power_domain) node.properties.emplace_back("power-domains", cells({kCm33Power}));
    return node;
}

std::string bootargs(const DeviceTreeOptions& options) {
    std::string args = "console=ttyLP0,115200 earlycon root=/dev/mmcblk1p2 rootwait rw";
    if (options.mcore_booted) args += " clk-imx93.mcore_booted";
    if (options.iomem_relaxed) args += " iomem=relaxed";
    return args + "\0"s;
}

DeviceTreeNode bus() {
    return {"bus@44000000",
            {{"compatible", strings({"fsl,aips-bus", "simple-bus"})},
             {"reg", cells({0x44000000, 0x800000})},
             {"#address-cells", cells({1})},
             {"#size-cells", cells({1})},
             {"ranges", ""}},
            {{"mailbox@44230000",
              {{"compatible", strings({"fsl,imx93-mu", "fsl,imx8ulp-mu"})},
               {"reg", cells({0x44230000, 0x10000})},
               {"interrupts", cells({0, 22, 4})},
               {"#mbox-cells", cells({2})},
               {"status", strings({"okay"})},
               {"phandle", cells({kMailbox})}},
              {}},
             {"clock-controller@44450000",
              {{"compatible", strings({"fsl,imx93-ccm"})},
               {"reg", cells({0x44450000, 0x10000})},
               {"#clock-cells", cells({1})},
               {"phandle", cells({kClock})}},
              {}}}};
}

}  // namespace

DeviceTreeNode imx93_device_tree(const DeviceTreeOptions& options) {
    return {
        "",
        {{"compatible", strings({"fsl,imx93-11x11-frdm", "fsl,imx93"})},
         {"model", strings({"NXP FRDM-IMX93"})},
         {"interrupt-parent", cells({1})},
         {"#address-cells", cells({2})},
         {"#size-cells", cells({2})}},
        {{"chosen", {{"bootargs", bootargs(options)}}, {}},
         {"cpus",
          {{"#address-cells", cells({1})}, {"#size-cells", cells({0})}},
          {{"cpu@0",
            {{"device_type", strings({"cpu"})}, {"compatible", strings({"arm,cortex-a55"})}, {"reg", cells({0})}},
            {}},
           {"cpu@100",
            {{"device_type", strings({"cpu"})}, {"compatible", strings({"arm,cortex-a55"})}, {"reg", cells({0x100})}},
            {}}}},
         {"memory@80000000",
          {{"device_type", strings({"memory"})}, {"reg", cells({0, 0x80000000, 0, 0x80000000})}},
          {}},
         reserved_memory(options),
         remoteproc(options),
         {"ethosu",
          {{"compatible", strings({"arm,ethosu"})},
           {"fsl,cm33-proc", cells({kCm33})},
           {"memory-region", cells({kEthosuRegion})},
           {"power-domains", cells({kMlmixPower})},
           {"status", strings({options.ethosu ? "okay" : "disabled"})}},
          {}},
         {"soc@0",
          {{"compatible", strings({"simple-bus"})},
           {"#address-cells", cells({1})},
           {"#size-cells", cells({1})},
           {"ranges", cells({0, 0, 0, 0x80000000})}},
          {bus()}}}};
}

Node device_tree_files(const DeviceTreeNode& root) {
    NodeMap children;
    for (const auto& [name, value] : root.properties) children.emplace(name, bytes_file(value));
    for (const DeviceTreeNode& child : root.children) children.emplace(child.name, device_tree_files(child));
    children.emplace("name", bytes_file(root.name.substr(0, root.name.find('@')) + "\0"s));
    return folder_of(std::move(children));
}

namespace {

// Tokens and header of the flattened format (Devicetree Specification 0.4, chapter 5).
constexpr std::uint32_t kMagic = 0xD00DFEED, kBeginNode = 1, kEndNode = 2, kProperty = 3, kEnd = 9;
constexpr std::uint32_t kVersion = 17, kCompatibleVersion = 16, kHeaderBytes = 40, kReserveMapBytes = 16;

struct Flattener {
    std::string structure, names;
    std::map<std::string, std::uint32_t> name_offsets;

    void pad() { structure.resize((structure.size() + 3) / 4 * 4); }
    void put(const DeviceTreeNode& node) {
        structure += cells({kBeginNode}) + node.name + "\0"s;
        pad();
        for (const auto& [name, value] : node.properties) {
            const auto [at, fresh] = name_offsets.try_emplace(name, static_cast<std::uint32_t>(names.size()));
            if (fresh) names += name + "\0"s;
            structure += cells({kProperty, static_cast<std::uint32_t>(value.size()), at->second}) + value;
            pad();
        }
        for (const DeviceTreeNode& child : node.children) put(child);
        structure += cells({kEndNode});
    }
};

}  // namespace

std::string flatten(const DeviceTreeNode& root) {
    Flattener flat;
    flat.put(root);
    flat.structure += cells({kEnd});
    const auto structure = static_cast<std::uint32_t>(flat.structure.size());
    const auto names = static_cast<std::uint32_t>(flat.names.size());
    const std::uint32_t structure_at = kHeaderBytes + kReserveMapBytes, names_at = structure_at + structure;
    return cells({kMagic, names_at + names, structure_at, names_at, kHeaderBytes, kVersion, kCompatibleVersion, 0,
                  names, structure}) +
           std::string(kReserveMapBytes, '\0') + flat.structure + flat.names;
}

}  // namespace talpa::board
