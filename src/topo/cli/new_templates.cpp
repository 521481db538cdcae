#include "topo/cli/new_templates.h"

#include <algorithm>

namespace talpa::topo {
namespace {

constexpr std::string_view kWebCompose =
    R"(# @NAME@: a web page. `topo deploy --target USER@BOARD` builds it here and starts it there.
services:
  web:
    platform: linux/arm64
    build:
      context: web
      args:
        TITLE: "@NAME@"
    ports:
      - "${WEB_PORT:-8080}:8080"
    restart: unless-stopped

x-topo:
  name: "@NAME@"
  description: A web page.
  deployment_success_message: "Open http://${TOPO_TARGET_HOSTNAME:-localhost}:${WEB_PORT:-8080}"
  parameters:
    TITLE:
      description: Heading of the page
      example: Kiln 2
)";

constexpr std::string_view kCompose = R"(# @NAME@: a web page on Linux and a firmware on the Cortex-M33.
# `topo deploy --target USER@BOARD` builds both here and starts them there.
services:
  web:
    platform: linux/arm64
    build:
      context: web
      args:
        TITLE: "@NAME@"
    ports:
      - "${WEB_PORT:-8080}:8080"
    volumes:
      - /sys:/sys:ro
    depends_on: [firmware]
    restart: unless-stopped
  firmware:
    build:
      context: firmware
    runtime: io.containerd.remoteproc.v1
    annotations:
      remoteproc.name: imx-rproc

x-topo:
  name: "@NAME@"
  description: A web page that shows the state of a firmware on the Cortex-M33.
  features: [remoteproc-runtime]
  deployment_success_message: "Open http://${TOPO_TARGET_HOSTNAME:-localhost}:${WEB_PORT:-8080}"
  parameters:
    TITLE:
      description: Heading of the page
      example: Kiln 2
)";

constexpr std::string_view kWebDockerfile = R"(FROM busybox:1.36
ARG TITLE
COPY www /www
RUN sed -i "s/@TITLE@/${TITLE}/" /www/index.html && chmod 755 /www/cgi-bin/state
EXPOSE 8080
CMD ["httpd", "-f", "-p", "8080", "-h", "/www"]
)";

constexpr std::string_view kPage = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>@TITLE@</title>
<h1>@TITLE@</h1>
<p>Remote processor: <span id="state">…</span></p>
<script>
  fetch("cgi-bin/state").then(r => r.text()).then(t => { document.getElementById("state").textContent = t.trim() || "none"; });
</script>
</html>
)";

constexpr std::string_view kState = R"SH(#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
for d in /sys/class/remoteproc/remoteproc*; do
    [ -f "$d/name" ] && echo "$(cat "$d/name"): $(cat "$d/state")"
done
exit 0
)SH";

constexpr std::string_view kFirmwareDockerfile = R"(FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc-arm-none-eabi && rm -rf /var/lib/apt/lists/*
COPY main.c firmware.ld /src/
RUN arm-none-eabi-gcc -mcpu=cortex-m33 -mthumb -O2 -Wall -Wextra -ffreestanding -nostdlib -T /src/firmware.ld -o /firmware.elf /src/main.c

FROM scratch
COPY --from=build /firmware.elf /firmware.elf
ENTRYPOINT ["/firmware.elf"]
)";

constexpr std::string_view kMain =
    R"(// A firmware for the Cortex-M33 of an i.MX 93 that says hello in the trace buffer of its resource table:
// /sys/kernel/debug/remoteproc/remoteproc0/trace0, or `topo logs firmware`.
#include <stdint.h>

extern uint32_t stack_top[];
static char trace[1024] = "hello from the Cortex-M33\n";

// Linux reads this section before it starts the processor (remoteproc's resource table, version 1).
struct trace_entry {
    uint32_t type, address, length, reserved;
    char name[32];
};
struct resource_table {
    uint32_t version, count, reserved[2], offset[1];
    struct trace_entry trace;
};
__attribute__((section(".resource_table"), used)) static const struct resource_table table = {
    .version = 1,
    .count = 1,
    .offset = {20},
    .trace = {.type = 2, .address = (uint32_t)(uintptr_t)trace, .length = sizeof trace, .name = "trace0"},
};

static void fault(void) {
    for (;;) {
    }
}

void reset(void) {
    for (;;) __asm volatile("wfi");
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault, fault,
    0, 0, 0, fault, fault, 0, fault, fault,
};
)";

constexpr std::string_view kLinkerScript =
    R"(/* Cortex-M33 of the i.MX 93 as it sees its own memory: code at 0x0FFE0000, data at 0x20000000, 128 KiB each. */
MEMORY {
    code (rx) : ORIGIN = 0x0FFE0000, LENGTH = 128K
    data (rw) : ORIGIN = 0x20000000, LENGTH = 128K
}
ENTRY(reset)
SECTIONS {
    .vectors : { KEEP(*(.vectors)) } > code
    .resource_table : ALIGN(8) { KEEP(*(.resource_table)) } > code
    .text : { *(.text*) *(.rodata*) } > code
    .data : { *(.data*) } > data
    .bss : { *(.bss*) *(COMMON) } > data
    stack_top = ORIGIN(data) + LENGTH(data);
    /DISCARD/ : { *(.ARM.exidx*) *(.comment) *(.ARM.attributes) }
}
)";

constexpr std::string_view kReadme = R"(# @NAME@

Made by `topo new`.

    topo lint
    topo deploy --target USER@BOARD
    topo ps --target USER@BOARD
    topo logs --target USER@BOARD

Parameters are set by `topo configure TITLE="…"`. Another port: `WEB_PORT=8081 topo deploy …`.
)";

constexpr std::string_view kClassifierCompose =
    R"(# @NAME@: a network on the Ethos-U65 NPU of an i.MX 93, with a page in front. README.md says what artifacts/ wants.
services:
  webapp:
    platform: linux/arm64
    build: webapp
    # /dev/mem, the RPMsg tty and sysfs are the board's own.
    privileged: true
    ports:
      - "${WEBAPP_PORT:-3001}:3000"
    volumes:
      - /sys:/sys
      - /dev:/dev
    restart: unless-stopped
    depends_on: [runner]
  runner:
    build: runner
    # The ELF is no Linux program: remoteproc-runtime boots it on the Cortex-M33.
    runtime: io.containerd.remoteproc.v1
    annotations:
      remoteproc.name: imx-rproc

x-topo:
  name: "@NAME@"
  description: A network on the Ethos-U65 NPU, behind a page on the board's Linux.
  features: [remoteproc-runtime]
  deployment_success_message: "Open http://${TOPO_TARGET_HOSTNAME:-localhost}:${WEBAPP_PORT:-3001}"
)";

constexpr std::string_view kClassifierDockerfile = R"(FROM scratch
ARG TARGETARCH
COPY artifacts/${TARGETARCH}/talpa-webapp /talpa-webapp
COPY artifacts/model.pte artifacts/labels.txt /opt/model/
ENV TALPA_WEBAPP_PROGRAM=/opt/model/model.pte TALPA_WEBAPP_LABELS=/opt/model/labels.txt
EXPOSE 3000
ENTRYPOINT ["/talpa-webapp"]
)";

constexpr std::string_view kRunnerDockerfile = R"(FROM scratch
COPY artifacts/executorch_runner_cm33.elf /
ENTRYPOINT ["/executorch_runner_cm33.elf"]
)";

constexpr std::string_view kClassifierReadme = R"(# @NAME@

Made by `topo new --template npu-classifier`. It wants these files, for the board's architecture (arm64; a virtual board on a PC: amd64):

| file | from |
| --- | --- |
| `webapp/artifacts/arm64/talpa-webapp` | talpa's build or its release |
| `webapp/artifacts/model.pte` | `talpa compile MODEL -o webapp/artifacts/model.pte --calibration SAMPLES` |
| `webapp/artifacts/labels.txt` | yours: the name of a class a line |
| `runner/artifacts/executorch_runner_cm33.elf` | talpa's build or its release |

    topo lint
    topo deploy --target USER@BOARD
    curl -F image=@photo.jpg http://BOARD:3001/api/classify
    curl -F image=@features.npy http://BOARD:3001/api/classify

A network that takes pictures gets them scaled as its program says; features (a spectrogram, sensor values) come as a `.npy` array of the
input's shape, or as its bytes.
)";

constexpr TemplateKind kKinds[] = {{"web-firmware", "a web page on Linux and a firmware on the Cortex-M33"},
                                   {"web", "a web page"},
                                   {"npu-classifier", "a network on the NPU with a page in front"}};
constexpr TemplateFile kFiles[] = {
    {"web-firmware", "compose.yaml", kCompose},
    {"web", "compose.yaml", kWebCompose},
    {"web-firmware web", "README.md", kReadme},
    {"web-firmware web", "web/Dockerfile", kWebDockerfile},
    {"web-firmware web", "web/www/index.html", kPage},
    {"web-firmware web", "web/www/cgi-bin/state", kState, true},
    {"web-firmware", "firmware/Dockerfile", kFirmwareDockerfile},
    {"web-firmware", "firmware/main.c", kMain},
    {"web-firmware", "firmware/firmware.ld", kLinkerScript},
    {"npu-classifier", "compose.yaml", kClassifierCompose},
    {"npu-classifier", "README.md", kClassifierReadme},
    {"npu-classifier", "webapp/Dockerfile", kClassifierDockerfile},
    {"npu-classifier", "runner/Dockerfile", kRunnerDockerfile},
};

}  // namespace

std::span<const TemplateKind> template_kinds() {
    return kKinds;
}

std::span<const TemplateFile> template_files() {
    return kFiles;
}

bool belongs_to(const TemplateFile& file, std::string_view kind) {
    for (std::string_view rest = file.kinds; !rest.empty();) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        if (rest.substr(0, end) == kind) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

}  // namespace talpa::topo
