#!/usr/bin/env bash
# What a newcomer sees on a Debian 12 with nothing on it: makes one with debootstrap (a folder, bind-mounted on itself so that
# container engines work in it), clones this tree's HEAD into it, runs `./run demo` from nothing to the top-5 and once more,
# measures time and disk, then runs `./run test`. Not part of CI: it takes an hour.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'END_OF_USAGE'
Usage: sudo scripts/fresh_machine.sh [--user] [--bare] [--no-test] [--folder DIR] [--mirror URL] [--port PORT] [--keep]

  --user        as a user with sudo instead of as root
  --bare        as in a container that was given nothing: without /dev/fuse and the rights to make it and to mount
                (CAP_MKNOD, CAP_SYS_ADMIN); the demo takes its reduced form, which is looked for
  --no-test     the demo only
  --folder DIR  where the machine is made (default /var/tmp/talpa-fresh-machine; must not exist; up to 10 GB)
  --mirror URL  Debian mirror (default: the one that this machine uses)
  --port PORT   port of the demo's page (default 3001)
  --keep        leave the folder

Debian's packages are fetched before the clock starts; unpacking them counts, and so does what pip and npm fetch.
Exit status: 1 if a step failed or a limit was passed: 15 minutes for the first demo, 20 s for the second, 5 GB of disk
with all that the demo installed and built.
END_OF_USAGE
}

user=root folder=/var/tmp/talpa-fresh-machine mirror='' port=3001 tests=yes bare='' keep=''
arguments=("$@")
while [ $# -gt 0 ]; do
    case "$1" in
        --user) user=newcomer; shift ;;
        --bare) bare=yes; shift ;;
        --no-test) tests=''; shift ;;
        --keep) keep=yes; shift ;;
        --folder | --mirror | --port)
            [ $# -ge 2 ] || { echo "fresh_machine: $1 wants a value" >&2; exit 2; }
            printf -v "${1#--}" %s "$2"
            shift 2 ;;
        -h | --help) usage; exit ;;
        *) usage >&2; exit 2 ;;
    esac
done
say() { printf '\n== fresh machine: %s\n' "$*"; }
fail() { echo "fresh_machine: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "only root can make a machine"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

# --- Outside: a folder, and namespaces with which all that was started and mounted in it ends --------------------------------
if [ "${TALPA_FRESH_MACHINE:-}" != inside ]; then
    [ ! -e "$folder" ] || fail "$folder exists already"
    mkdir -p "$folder"
    status=0
    TALPA_FRESH_MACHINE=inside unshare --mount --pid --fork --kill-child --propagation private "$0" "${arguments[@]}" || status=$?
    [ -n "$keep" ] || rm -rf --one-file-system "$folder"
    exit "$status"
fi

mount -t proc proc /proc  # that of the process namespace, for nsenter

# --- Inside: the machine ------------------------------------------------------------------------------------------------------
if [ -z "$mirror" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' 'Created-By: Packages' |
        awk '$2 == "bookworm" && $3 == "Debian" {print $1; exit}')
    [ -n "$mirror" ] || fail "this machine's apt knows no Debian 12: give --mirror URL"
fi
say "a minimal Debian 12 in $folder, from $mirror"
debootstrap --variant=minbase bookworm "$folder" "$mirror" > "$folder.debootstrap" 2>&1 || { tail -5 "$folder.debootstrap" >&2; fail "debootstrap failed"; }
rm -f "$folder.debootstrap"
mount --bind "$folder" "$folder"
mount -t proc proc "$folder/proc"
mount --rbind /sys "$folder/sys"
# The nodes that every machine has, of its own, so that a demo that forgets itself cannot hurt this machine's.
mount -t tmpfs -o mode=755,dev tmpfs "$folder/dev"
for node in null zero full random urandom tty net/tun $([ -n "$bare" ] || echo fuse); do
    [ -e "/dev/$node" ] || continue
    mkdir -p "$(dirname "$folder/dev/$node")"
    touch "$folder/dev/$node"
    mount --bind "/dev/$node" "$folder/dev/$node"
done
mkdir "$folder/dev/pts" "$folder/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$folder/dev/pts"
ln -s pts/ptmx "$folder/dev/ptmx"
for link in fd:/proc/self/fd stdin:/proc/self/fd/0 stdout:/proc/self/fd/1 stderr:/proc/self/fd/2; do
    ln -s "${link#*:}" "$folder/dev/${link%%:*}"
done
mount -t tmpfs -o mode=1777 tmpfs "$folder/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$folder/run"
# This machine's way into the network: names, certificates of its own, a proxy, how patient pip is.
cp /etc/resolv.conf /etc/hosts "$folder/etc/"
if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
    mkdir -p "$folder/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$folder/usr/local/share/ca-certificates/"
fi
network=()
while IFS= read -r variable; do network+=("$variable"); done < <(env | grep -iE '^(https?_proxy|no_proxy|pip_default_timeout)=' || true)

# Its root is that of a mount namespace, as on any machine: a chroot's processes are refused or led out by what enters
# namespaces (podman exec).
unshare --mount --propagation private bash -c 'cd "$1" && mkdir .outside && pivot_root . .outside && cd / &&
    umount --lazy /.outside && rmdir /.outside && touch /run/up && exec sleep infinity' - "$folder" &
machine=$!
until [ -e "$folder/run/up" ]; do
    kill -0 "$machine" 2>/dev/null || fail "the machine's root cannot be had"
    sleep 0.1
done

rights=()
[ -z "$bare" ] || rights=(setpriv --bounding-set=-sys_admin,-mknod --inh-caps=-sys_admin,-mknod)
in_machine() { # in_machine USER COMMAND…: from its home folder, with nothing of this machine's environment
    local as=$1 home=/root
    shift
    [ "$as" = root ] || home=/home/$as
    nsenter --target "$machine" --mount -- "${rights[@]}" \
        chroot --userspec="$as:$as" --groups="$(chroot "$folder" id -G "$as" | tr ' ' ,)" / \
        env -i HOME=$home USER="$as" LOGNAME="$as" TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${network[@]}" /bin/bash -c "cd \"\$HOME\" && $*"
}
in_machine root "apt-get update -q && apt-get install -qy --no-install-recommends git ca-certificates" > "$folder/root/apt.log" 2>&1 ||
    { tail -5 "$folder/root/apt.log" >&2; fail "apt-get failed"; }
if [ "$user" != root ]; then
    in_machine root "apt-get install -qy --no-install-recommends sudo && useradd --create-home --shell /bin/bash --groups sudo $user &&
        echo '$user ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/$user" >> "$folder/root/apt.log" 2>&1
fi
home=$folder/root
[ "$user" = root ] || home=$folder/home/$user
git clone --quiet --no-hardlinks "$repository" "$home/talpa"
chroot "$folder" chown -R "$user:$user" "${home#"$folder"}/talpa"

fetch() { # fetch PARTS: Debian's packages of those parts (scripts/packages.txt), into apt's cache only
    local list
    list=$(grep -v '^#' "$repository/scripts/packages.txt" | grep -E "^($1):" | cut -d: -f2- | tr '\n' ' ')
    in_machine root "apt-get install -qy --download-only --no-install-recommends $list" >> "$folder/root/apt.log" 2>&1 ||
        { tail -5 "$folder/root/apt.log" >&2; fail "apt-get cannot fetch $list"; }
}
disk_mb() { du -sxm --exclude=./var/cache/apt/archives "$folder" | cut -f1; }
load() { cut -d' ' -f1 /proc/loadavg; }
failed=0
rows=()
# measure TITLE LIMIT_S COMMAND: its seconds, those of a processor, and whether it kept to the limit (0: none)
measure() {
    local began=$SECONDS before status=0 taken processor verdict=ok
    before=$(load)
    say "$1 ($user): $3"
    TIMEFORMAT='%U %S'
    { time in_machine "$user" "cd talpa && $3" 2>&3 | tee "$folder/root/said" || status=$?; } 3>&2 2> "$folder/root/processor_time"
    processor=$(awk '{print int($1 + $2)}' "$folder/root/processor_time")
    taken=$((SECONDS - began))
    [ "$status" = 0 ] || verdict="FAILED ($status)"
    case ${bare:+$3} in
        *demo\ --port*) grep -q '== .*Reduced form' "$folder/root/said" || verdict="NOT REDUCED; $verdict" ;;
    esac
    [ "$2" = 0 ] || [ "$taken" -le "$2" ] || verdict="TOO SLOW (limit $2 s); $verdict"
    [ "$verdict" = ok ] || failed=1
    rows+=("$(printf '%-16s %5d s, processor time %5d s, load %s to %s: %s' "$1" "$taken" "$processor" "$before" "$(load)" "$verdict")")
}

base=$(disk_mb)
say "fetching Debian's packages"
fetch 'build|libraries|firmware|demo'
measure "first demo" 900 "./run demo --port $port"
after_demo=$(disk_mb)
measure "second demo" 20 "./run demo --port $port"
measure "end of the demo" 0 "./run demo --down"
if [ -n "$tests" ]; then
    fetch "$(grep -v '^#' "$repository/scripts/packages.txt" | grep -vE '^arm64:' | cut -d: -f1 | tr '\n' '|' | sed 's/|$//')"
    measure "tests" 0 "./run test"
fi
verdict=ok
[ "$after_demo" -le 5000 ] || { verdict="TOO MUCH (limit 5000 MB)"; failed=1; }
say "$(nproc) processors, $(git -C "$repository" rev-parse --short HEAD)${bare:+, without /dev/fuse, CAP_MKNOD, CAP_SYS_ADMIN}"
printf '%s\n' "${rows[@]}"
printf 'disk after it    %5d MB in all (%d MB before, by debootstrap and git): %s\n' "$after_demo" "$base" "$verdict"
[ -z "$tests" ] || printf 'after the tests  %5d MB\n' "$(disk_mb)"
exit "$failed"
