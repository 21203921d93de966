#!/usr/bin/env bash
# Builds what tests against a real Kubernetes API need, from Debian's own packages: etcd and kube-apiserver,
# kube-controller-manager and kube-scheduler 1.20 into DIR/bin. About five minutes and 3 GB on two cores, once; nothing
# is installed beside missing build tools. No containers, no Go proxy.
# usage: scripts/build_kubernetes.sh DIR
set -euo pipefail

PARTS=(kube-apiserver kube-controller-manager kube-scheduler)
target="$(mkdir -p "$1" && cd "$1" && pwd)"

complete() {
    local part
    for part in etcd "${PARTS[@]}"; do [[ -x "$target/bin/$part" ]] || return 1; done
}
complete && exit 0

need() {
    local missing=() tool
    for tool in make rsync jq dpkg-source; do command -v "$tool" >/dev/null || missing+=("$tool"); done
    ((${#missing[@]} == 0)) && return
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make rsync jq dpkg-dev >/dev/null
}

# apt with a state of its own for the suite that has these packages; the machine's own sources stay as they are.
work="$(mktemp -d "$target/build.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mirror() {
    local found
    found="$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
        sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' | grep -v security | sed -n 1p || true)"
    [[ -n "$found" ]] || { echo "no Debian mirror is configured on this machine" >&2; return 1; }
    echo "$found"
}
debian() {
    apt-get -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -qq "$@" >/dev/null
}

need
cd "$work"
mkdir -p lists/partial cache/archives/partial unpacked
uri="$(mirror)"
printf 'deb %s bookworm main\ndeb-src %s bookworm main\n' "$uri" "$uri" >sources.list
debian update
debian download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server
for package in *.deb; do dpkg-deb -x "$package" unpacked; done
debian source kubernetes 2>/dev/null

# The compiler, put together from its two packages.
go="$work/go"
mkdir -p "$go/pkg"
cp -rL unpacked/usr/share/go-1.19/. "$go/"
cp -rL unpacked/usr/lib/go-1.19/. "$go/"

# The copy of reflect2 that comes with this Kubernetes crashes under this compiler at the first custom resource.
cd "$work"/kubernetes-1.20*/
vendored=vendor/github.com/modern-go/reflect2
rm -rf "$vendored" && mkdir "$vendored"
cp "$work"/unpacked/usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} "$vendored/"

mkdir -p .gopath/src/k8s.io
ln -sfn ../../.. .gopath/src/k8s.io/kubernetes
env GOROOT="$go" PATH="$go/bin:$PATH" GOPATH="$PWD/.gopath" HOME="$work" GOFLAGS= GOPROXY=off CGO_ENABLED=0 \
    make WHAT="${PARTS[*]/#/cmd/}" GOLDFLAGS="-s -w" >"$target/build.log" 2>&1 ||
    { tail -20 "$target/build.log" >&2; exit 1; }

mkdir -p "$target/bin"
for part in "${PARTS[@]}"; do install "_output/bin/$part" "$target/bin/$part"; done
install "$work/unpacked/usr/bin/etcd" "$target/bin/etcd"
complete
