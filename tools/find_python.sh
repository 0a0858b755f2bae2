#!/bin/sh
# Prints a Python that the course can use, or says what to do. The only step before a Python is known.
# One named by PYTHON wins; else the first that is new enough and can make environments; else the first new enough.

if [ -n "$PYTHON" ]; then
    candidates=$PYTHON
else
    candidates="python3 python3.13 python3.12 python3.11 python3.10 python3.14 python"
fi

seen=
new_enough=
for candidate in $candidates; do
    found=$(command -v "$candidate" 2>/dev/null) || continue
    # A pyenv shim or a Windows store alias can be there and yet not run.
    version=$("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    seen="$seen $found ($version)"
    "$found" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || continue
    [ -n "$new_enough" ] || new_enough=$found
    if "$found" -c 'import venv, ensurepip' 2>/dev/null; then
        printf '%s\n' "$found"
        exit 0
    fi
done

if [ -n "$new_enough" ]; then
    printf '%s\n' "$new_enough"
    exit 0
fi

{
    if [ -n "$seen" ]; then
        echo "✗ Python 太旧：$seen；需要 3.10 或更新。"
        echo "✗ Python is too old:$seen; 3.10 or newer is needed."
    else
        echo "✗ 找不到可用的 python3${PYTHON:+（PYTHON=$PYTHON）}。"
        echo "✗ No working python3 found${PYTHON:+ (PYTHON=$PYTHON)}."
    fi
    echo "  Debian / Ubuntu: apt install python3 python3-venv    macOS: brew install python    conda: environment.yml"
    echo "  make lab PYTHON=/path/to/python3.12"
} >&2
exit 1
