"""The machine that a report was taken on, for the reports of compare.sh and scale.sh."""

import datetime
import os
import platform


def machine(filesystem):
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "filesystem": filesystem,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def machine_line(host):
    return f"machine: {host['cpu']}, {host['cores']} cores, {host['filesystem']}, Linux {host['kernel']}"
