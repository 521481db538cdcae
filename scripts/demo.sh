#!/usr/bin/env bash
# ./run demo: every part of talpa at its real work, step by step with times: the compiler makes a .pte of trained weights, the
# firmware is an ELF, topo deploys the project over ssh to a (virtual) board, the engine there boots the ELF through
# remoteproc-runtime, the page classifies a picture. Where a step cannot run here, it says so and takes the reduced form.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/build/release/bin:$PATH"

usage() {
    cat <<'END'
Usage: ./run demo [--image FILE] [--model mobilenet_v2|efficientnet_lite0|FILE] [--target TARGET] [--port PORT] [--down]

  --image FILE     picture to classify (default: a cat, docs/pictures/chelsea.jpg)
  --model MODEL    what to compile: a model that talpa knows, or a file (.pt2, .tflite, .onnx, .pte)
  --target TARGET  a real board over ssh (user@board); default: a virtual one, board://demo
  --port PORT      port of the page (default 3001)
  --down           end the demo: its containers and its board

Examples:
  ./run demo --image my.jpg
  ./run demo --model my.pt2 --target root@192.168.1.20
  ./run demo --down
END
}

image=docs/pictures/chelsea.jpg model= target= port=3001 down=
while [ $# -gt 0 ]; do
    case "$1" in
        --image | --model | --target | --port)
            [ $# -ge 2 ] || { echo "demo: $1 wants a value" >&2; exit 2; }
            printf -v "${1#--}" %s "$2"
            shift 2 ;;
        --down) down=yes; shift ;;
        -h | --help) usage; exit ;;
        *) usage >&2; exit 2 ;;
    esac
done
[ -f "$image" ] || { echo "demo: there is no picture $image" >&2; exit 1; }

out=build/demo
board=demo
reference=${TALPA_REFERENCE:-../shared/reference}
project=build/projects/imx93-npu-classifier
mkdir -p "$out"

if [ -n "$down" ]; then
    [ -f "$out/pids" ] && xargs -r kill 2>/dev/null < "$out/pids" || true
    rm -f "$out/pids"
    talpa board down --name $board 2>/dev/null || echo "No demo board is up."
    exit
fi

now() { date +%s%N; }
started=$(now)
step=0
seconds() { printf '%d.%d s' $((($(now) - $1) / 1000000000)) $((($(now) - $1) / 100000000 % 10)); }
size_of() { printf '%d KiB' $((($(stat -c %s "$1") + 1023) / 1024)); }
say() { step=$((step + 1)); printf '\n== %d. %s\n' "$step" "$*"; }
# Shows what is run and runs it, so that one can paste it.
show() {
    local began status=0
    printf '$ %s\n' "$*"
    began=$(now)
    "$@" || status=$?
    printf -- '-- %s\n' "$(seconds "$began")"
    return "$status"
}

# --- 1. The model ------------------------------------------------------------------------------------------------------
say "The model: trained ImageNet weights"
normalise=()
if [ -z "$model" ]; then
    if [ -f "$reference/models/mobilenet_v2.pth" ]; then model=mobilenet_v2; else model=efficientnet_lite0; fi
fi
case "$model" in
    mobilenet_v2)
        if [ -f "$reference/models/mobilenet_v2/mobilenet_v2.float.pt2" ]; then
            file=$reference/models/mobilenet_v2/mobilenet_v2.float.pt2
        else
            show talpa model get mobilenet_v2 -o "$out/mobilenet_v2.pth"
            file=$out/mobilenet_v2.pth
        fi
        program=$out/mv2_ethosu65_256.pte ;;
    efficientnet_lite0)
        show talpa model get efficientnet_lite0 -o "$out/efficientnet_lite0.pth"
        file=$out/efficientnet_lite0.pth program=$out/model.pte ;;
    *)
        [ -f "$model" ] || { echo "demo: --model: no such file, and talpa does not know a model of that name: $model" >&2; exit 1; }
        file=$model program=$out/model.pte ;;
esac
echo "$file ($(size_of "$file"))"

labels=$reference/imagenet_labels.txt
[ -f "$labels" ] || labels=projects/imx93-npu-classifier/imagenet_classes.txt
calibration=$reference/calibration
[ -d "$calibration" ] || calibration=docs/pictures

# --- 2. The compiler ---------------------------------------------------------------------------------------------------
say "The compiler: int8, Ethos-U65-256 command stream, .pte"
if [ "${file##*.}" = pte ]; then
    cp "$file" "$program"
    echo "It is compiled already."
elif [ -f "$program" ] && [ "$program" -nt "$file" ] && [ "$program" -nt build/release/bin/talpa ]; then
    echo "$program ($(size_of "$program")) is up to date."
else
    show talpa compile "$file" --calibration "$calibration" --labels "$labels" "${normalise[@]}" -o "$program"
fi

# --- 3. The project ----------------------------------------------------------------------------------------------------
say "The project: firmware, web application, program and labels, ready to deploy"
show scripts/assemble_project.sh "$project" "$program" "$labels"
du -sh "$project" | cut -f1

classify_by_page() {
    local tries=0
    until curl -fsS -o /dev/null "http://127.0.0.1:$port/healthz" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "demo: the page does not answer at port $port" >&2; return 1; }
        sleep 0.2
    done
    curl -fsS -F "image=@$image" "${1:-http://127.0.0.1:$port}/api/classify" > "$out/answer.json" ||
        { echo "demo: the page does not classify; what it says: curl http://127.0.0.1:$port/api/checks" >&2; return 1; }
    /usr/bin/python3 - "$out/answer.json" <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
for c in answer["top"]:
    print(f'  {100 * c["probability"]:5.1f} %  {"#" * round(30 * c["probability"]):30s}  {c["class"]} {c["label"] or ""}')
time = answer["time_ms"]
print(f'  {time["total"]:.0f} ms in all, of which {time["run"]:.0f} ms from RUN to the last line; NPU {answer["npu_cycles"]:,} cycles')
END
}

# --- 4. The board ------------------------------------------------------------------------------------------------------
reduced=
engine=
for candidate in podman docker; do command -v $candidate >/dev/null && { engine=$candidate; break; }; done
if [ -z "$target" ]; then
    say "The board: a virtual i.MX 93"
    if talpa board status --name $board >/dev/null 2>&1; then
        echo "It is up already."
    elif ! show talpa board up --name $board --ssh 0 --publish "$port"; then
        reduced="no namespaces here"
    fi
    target=board://$board
    [ -n "$engine" ] || reduced="no container engine here (podman or docker)"
fi

if [ -z "$reduced" ]; then
    # --- 5. The runtime and the deployment -----------------------------------------------------------------------------
    say "The container runtime that boots firmware, onto the board"
    show topo install remoteproc-runtime --target "$target"
    say "Deploy: build the images, send the missing layers over ssh, start firmware and page"
    (cd "$project" && WEBAPP_PORT=$port show topo deploy --target "$target" --quiet)
    show topo ps --target "$target" -f "$project/compose.yaml"
else
    # --- 5. Without containers -----------------------------------------------------------------------------------------
    talpa board down --name $board >/dev/null 2>&1 || true
    root=$out/board
    say "Reduced form ($reduced): the board's files below $root, firmware started by its sysfs, the page as a process"
    mkdir -p "$root"
    show talpa board up --name $board --root "$root"
    cp build/firmware/executorch_runner_cm33.elf "$root/lib/firmware/"
    echo executorch_runner_cm33.elf > "$root/sys/class/remoteproc/remoteproc0/firmware"
    echo start > "$root/sys/class/remoteproc/remoteproc0/state"
    talpa-webapp --root "$root" --listen "127.0.0.1:$port" --program "$program" --labels "$labels" > "$out/webapp.log" 2>&1 &
    echo $! > "$out/pids"
fi

# --- 6. The answer -----------------------------------------------------------------------------------------------------
say "Classify $image on the page"
classify_by_page

cat <<END

Done in $(seconds "$started"). The page: http://127.0.0.1:$port
Next: ./run demo --image my.jpg    another picture
      talpa inspect $program --html report.html    what is in the program and where its time goes
      topo logs --target $target -f $project/compose.yaml    what firmware and page say
      ./run demo --down    end it all
END
