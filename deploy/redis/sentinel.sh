#!/bin/sh
# Starts a sentinel for the master `kcm`, which is at the address KCM_REDIS_MASTER at the first
# start. What sentinels find out is kept in /data/sentinel.conf; all else is written anew at each
# start. The users worker and flower may ask for the master, and nothing more; sentinels know each
# other by the user sentinel. A server that has been silent for KCM_SENTINEL_DOWN_AFTER milliseconds
# (5000) counts as down.
set -eu
umask 077
: "${KCM_WORKER_PASSWORD:?is not set}" "${KCM_FLOWER_REDIS_PASSWORD:?is not set}" \
    "${KCM_SENTINEL_PASSWORD:?is not set}" "${KCM_REDIS_MASTER:?is not set}"

# Prints the SHA-256 of a password, as ACL rules have it.
hash_of() { printf '%s' "$1" | sha256sum | cut -d ' ' -f 1; }

config=${KCM_SENTINEL_CONFIG:-/data/sentinel.conf}
learnt=$(grep -E '^sentinel (myid|monitor|config-epoch|leader-epoch|current-epoch|known-replica|known-sentinel) ' \
    "$config" 2>/dev/null || true)
asker='resetkeys allchannels -@all +auth +hello +ping +client|setname +subscribe +unsubscribe +psubscribe +sentinel|masters +sentinel|master +sentinel|replicas +sentinel|slaves +sentinel|sentinels +sentinel|get-master-addr-by-name'
{
    echo "port ${KCM_LISTEN_PORT:-26379}"
    echo "user default off resetpass -@all"
    echo "user sentinel on #$(hash_of "$KCM_SENTINEL_PASSWORD") allchannels +@all"
    echo "user worker on #$(hash_of "$KCM_WORKER_PASSWORD") $asker"
    echo "user flower on #$(hash_of "$KCM_FLOWER_REDIS_PASSWORD") $asker"
    echo "user health on nopass -@all +ping"
    echo "sentinel sentinel-user sentinel"
    echo "sentinel sentinel-pass $KCM_SENTINEL_PASSWORD"
    case "$learnt" in
        *"sentinel monitor "*) echo "$learnt" | grep '^sentinel monitor ' ;;
        *) echo "sentinel monitor kcm $KCM_REDIS_MASTER ${KCM_REDIS_PORT:-6379} 2" ;;
    esac
    echo "sentinel auth-user kcm sentinel"
    echo "sentinel auth-pass kcm $KCM_SENTINEL_PASSWORD"
    echo "sentinel down-after-milliseconds kcm ${KCM_SENTINEL_DOWN_AFTER:-5000}"
    echo "sentinel failover-timeout kcm 10000"
    echo "$learnt" | grep -v '^sentinel monitor ' || true
} > "$config.new"
mv "$config.new" "$config"

exec "${KCM_REDIS_SERVER:-redis-server}" "$config" --sentinel --bind "${KCM_SENTINEL_BIND:-0.0.0.0}" --protected-mode no
