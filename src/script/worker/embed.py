#!/usr/bin/env python3
"""Makes a C header of a text file: embed.py NAME INPUT OUTPUT. Lines that are only a comment are
left out, but kept as empty lines, so that numbers in stack traces stay true."""

import sys


def main():
    name, source, target = sys.argv[1:]
    lines = []
    with open(source, encoding="utf-8") as text:
        for line in text.read().split("\n"):
            code = "" if line.strip().startswith("//") else line.strip()
            lines.append('"' + code.replace("\\", "\\\\").replace('"', '\\"') + '\\n"')
    with open(target, "w", encoding="utf-8") as header:
        header.write(f"#pragma once\n\nstatic const char {name}[] =\n" + "\n".join(lines) + ";\n")


if __name__ == "__main__":
    main()
