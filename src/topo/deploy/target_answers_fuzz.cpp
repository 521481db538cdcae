// Everything that is parsed of what a target says: lscpu, meminfo, probes, engines, records, kernel tables, archives.
// The first byte chooses the parser.
#include <cstdint>
#include <string>

#include "topo/deploy/docker_create.h"
#include "topo/deploy/image_archive.h"
#include "topo/deploy/listeners.h"
#include "topo/deploy/preflight.h"
#include "topo/deploy/record.h"
#include "topo/deploy/registry.h"
#include "topo/target/device_tree_rpmsg.h"
#include "topo/target/health.h"
#include "topo/target/ssh_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::topo;
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 9) {
        case 0:
            (void)parse_lscpu(text);
            break;
        case 1:
            (void)parse_meminfo(text);
            (void)parse_listening(text);
            (void)exposed_listeners(text, kDefaultRegistryPort);
            break;
        case 2: {
            const ProbeAnswers answers = parse_probe(text, "n");
            (void)hardware_from(answers, false);
            (void)parse_target_state(answers);
            TargetHealth health;
            health.destination = {.user = {}, .host = "h", .port = {}};
            judge_target(answers, health);
            (void)health_json({.host = {}, .target = health});
            break;
        }
        case 3:
            (void)parse_containers(EngineKind::Podman, text, text);
            break;
        case 4:
            (void)parse_containers(EngineKind::Docker, text, text);
            (void)parse_images(text);
            (void)create_body(text, {"CMD", "/check"});
            (void)parse_registry_container(text);
            break;
        case 5:
            (void)parse_info(EngineKind::Docker, text);
            (void)parse_info(EngineKind::Podman, text);
            break;
        case 6:
            if (const auto record = parse_record(text)) (void)record_json(*record);
            break;
        case 7:
            (void)read_image_archive(text);
            break;
        default: {
            bool found = false;
            (void)after_marker(text, found);
            (void)classify_ssh(text);
            (void)parse_create_answer(text);
            (void)pushed_digest(text);
            (void)overlapping_region(TreeText::parse(text), "/reserved-memory/x", 0xC0000000, 0x400000);
            (void)missing_for_rpmsg(TreeText::parse(text));
            break;
        }
    }
    return 0;
}
