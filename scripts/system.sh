#!/bin/sh
# What the tests need from the system: installed as root or with a sudo that asks for nothing, else named.
#
# Exit status: 0 all is there, or what is missing is said and its tests will be skipped;
#              1 something is missing under CI=true, where a skip would pass for a green run.
set -eu

# program:Debian package
parts="curl:curl ps:procps chromium:chromium nginx:nginx caddy:caddy systemd-analyze:systemd"
# Debian keeps servers where an ordinary user's PATH does not look.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

here() {
    command -v "$1" >/dev/null 2>&1 && return
    # The tests take any of these browsers.
    [ "$1" = chromium ] && { command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1
}

missing() {
    found=
    for part in $parts; do
        here "${part%:*}" || found="$found ${part#*:}"
    done
    echo "${found# }"
}

# A server that a test starts by itself must not begin to serve on this machine's port 80, now or at its next start.
install() {
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' | $as tee $policy >/dev/null
        $as chmod 755 $policy
        trap '$as rm -f $policy' EXIT
        trap 'exit 1' HUP INT TERM
    fi
    $as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" >/dev/null
    for server in nginx caddy; do
        case " $* " in *" $server "*)
            ! command -v systemctl >/dev/null 2>&1 || $as systemctl --quiet disable $server >/dev/null 2>&1 || true ;;
        esac
    done
}

packages=$(missing)
[ -n "$packages" ] || exit 0

if command -v apt-get >/dev/null 2>&1; then
    as=
    if [ "$(id -u)" = 0 ] || { as="sudo -n" && sudo -n true 2>/dev/null; }; then
        echo "Installing from this system's packages: $packages" >&2
        $as apt-get update -qq || true
        wanted=
        for package in $packages; do
            # Not every Debian and Ubuntu has each; one that is unknown would keep the others out.
            if apt-cache show "$package" >/dev/null 2>&1; then wanted="$wanted $package"; fi
        done
        # shellcheck disable=SC2086  # words
        [ -z "$wanted" ] || install $wanted || true
    fi
    packages=$(missing)
    [ -n "$packages" ] || exit 0
    echo "Missing: $packages" >&2
    echo "As root: apt-get install $packages" >&2
else
    echo "Missing: $packages" >&2
    echo "Install them with this system's package manager." >&2
fi
case "${CI:-}" in
    1 | true | yes) exit 1 ;;
esac
echo "The tests that need them are skipped." >&2
