#!/usr/bin/env bash
# Builds librdkafka 2.12.1, once, and prints the folder that it is in: for MILLRACE_RDKAFKA_ROOT. Its source is a part
# of the crate that librdkafka.toml names, so cargo fetches it; nothing of Rust is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly root=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace}/librdkafka-2.12.1

build() {
    local work=$root.build
    rm -rf "$work" "$root.new"
    mkdir -p "$work"
    cp "$here/librdkafka.toml" "$work/Cargo.toml"
    (cd "$work" && cargo vendor --quiet crates >/dev/null)
    cmake -S "$work/crates/rdkafka-sys/librdkafka" -B "$work/out" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$root" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DWITH_SSL=ON \
        -DWITH_SASL=ON -DWITH_CURL=OFF -DRDKAFKA_BUILD_TESTS=OFF -DRDKAFKA_BUILD_EXAMPLES=OFF
    cmake --build "$work/out" -j "$(nproc)" --target rdkafka
    DESTDIR=$work/installed cmake --install "$work/out/src"
    mv "$work/installed$root" "$root"
    rm -rf "$work"
}

mkdir -p "${root%/*}"
exec {lock}>"$root.lock"
flock "$lock"
[ -d "$root" ] || build >&2
echo "$root"
