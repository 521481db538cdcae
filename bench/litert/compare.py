"""MobileNetV2 on talpa's NPU model against LiteRT with XNNPACK: same machine, same run, turn by turn.

Each round runs both sides a few times, in alternating order, and takes the median of each; what is reported are the
ratios talpa/LiteRT of the rounds, so that whatever else the machine does meets both. Two threads count only where
LiteRT itself gains at least a quarter from the second one: else the machine had no second core to give.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy
from ai_edge_litert.interpreter import Interpreter


class LiteRt:
    def __init__(self, path, threads):
        self.interpreter = Interpreter(path, num_threads=threads)
        self.interpreter.allocate_tensors()
        names = [op["op_name"] for op in self.interpreter._get_ops_details()]
        if "DELEGATE" not in names:
            sys.exit("compare: LiteRT did not hand the network to its XNNPACK delegate")
        details = self.interpreter.get_input_details()[0]
        data = path.replace(".tflite", ".in0.bin")
        self.interpreter.set_tensor(details["index"], numpy.fromfile(data, details["dtype"]).reshape(details["shape"]))

    def run(self, count):
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self.interpreter.invoke()
            times.append(time.perf_counter_ns() - start)
        return times


class Talpa:
    def __init__(self, server, model, threads):
        name = os.path.basename(model.rstrip("/"))
        command = [server, f"{model}/{name}.pte", f"{model}/in0.bin", f"{model}/out0.bin", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.isa = self.process.stdout.readline().split()[1]

    def run(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("compare: talpa's side ended")
        return [int(t) for t in line.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tflite", required=True)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5, help="of each side in a round")
    args = parser.parse_args()

    single = {}
    for threads in [int(t) for t in args.threads.split(",")]:
        litert, talpa = LiteRt(args.tflite, threads), Talpa(args.server, args.model, threads)
        litert.run(10)
        talpa.run(10)
        times = {"litert": [], "talpa": []}
        for i in range(args.rounds):
            order = [("litert", litert), ("talpa", talpa)]
            for name, side in order if i % 2 == 0 else reversed(order):
                times[name].append(statistics.median(side.run(args.runs)) / 1e6)
        talpa.close()
        ratios = [t / l for t, l in zip(times["talpa"], times["litert"])]
        median = {name: statistics.median(t) for name, t in times.items()}
        single.setdefault("litert", median["litert"])
        print(f"threads {threads} (talpa: {talpa.isa})")
        for name in ("litert", "talpa"):
            t = times[name]
            print(f"  {name:7} median {median[name]:7.3f} ms   min {min(t):7.3f}   p90 {percentile(t, 0.9):7.3f}")
        print(f"  ratio talpa/litert: median {statistics.median(ratios):.3f}   min {min(ratios):.3f}   "
              f"p90 {percentile(ratios, 0.9):.3f}   of {len(ratios)} pairs")
        print(f"figure: MobileNetV2, {threads} thread{'s' * (threads > 1)} (peer: LiteRT, XNNPACK) | {median['talpa']:.2f} ms | {median['litert']:.2f} ms | "
              f"{statistics.median(ratios):.2f}")
        if threads > 1 and median["litert"] > 0.75 * single["litert"]:
            print(f"  void: LiteRT itself gains only {1 - median['litert'] / single['litert']:.0%} from {threads} threads "
                  "(at least 25% is asked); the machine is busy")


if __name__ == "__main__":
    main()
