#!/usr/bin/env bash
# scripts/emulated.sh COMMAND…: runs a command where the kernel hands arm64 programs to qemu, so that they start each other as on a
# board: in a user namespace of its own with a binfmt_misc of its own (kernels since 6.7); nothing of the machine changes. Exit
# status: the command's; 77 where such a namespace cannot be had.
set -euo pipefail
[ $# -gt 0 ] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }
qemu=$(command -v qemu-aarch64-static) || { echo "emulated: qemu-aarch64-static is missing" >&2; exit 77; }
unshare --user --map-root-user --mount true 2>/dev/null || { echo "emulated: no user namespace can be had" >&2; exit 77; }
# shellcheck disable=SC2016  # expanded inside
exec unshare --user --map-root-user --mount --propagation private bash -c '
    set -euo pipefail
    # An ELF of 64 bits for machine 0xB7, program or library; F: the interpreter is opened now, whatever is mounted later.
    elf="\\x7f\\x45\\x4c\\x46\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00"
    mask="\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff"
    if ! mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc 2>/dev/null ||
        ! echo ":talpa-arm64:M::$elf:$mask:$0:F" > /proc/sys/fs/binfmt_misc/register; then
        echo "emulated: no binfmt_misc of its own (kernels since 6.7 have it)" >&2
        exit 77
    fi
    export TALPA_EMULATED=1
    exec "$@"' "$qemu" "$@"
