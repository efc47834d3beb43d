#!/bin/sh
# Starts Redis with kcm's users. The passwords come from the environment and go
# into the ACL file as SHA-256, so that neither arguments nor files show them.
# Further arguments go to redis-server. The users admin, replica and sentinel are
# off unless KCM_ADMIN_PASSWORD, KCM_REPLICA_PASSWORD and KCM_SENTINEL_PASSWORD are set.
#
# With KCM_SENTINELS, addresses of sentinels with spaces between, the server is one of several, at
# the address KCM_REDIS_ADDRESS: it asks them who the master of `kcm` is, and follows that one.
#
# Nobody can log in as user `default`, and yet it may do everything: Redis replays
# its append-only file as `default`, and drops each script's and transaction's writes
# that `default` may not make. Without these rights a restart loses every object.
set -eu
umask 077
: "${KCM_WORKER_PASSWORD:?is not set}" "${KCM_INJECTOR_PASSWORD:?is not set}" \
    "${KCM_FLOWER_REDIS_PASSWORD:?is not set}"

# Prints how a user logs in: with the password $1, or not at all without one.
login_with() {
    [ -n "$1" ] || { echo "off resetpass"; return; }
    printf 'on #%s' "$(printf '%s' "$1" | sha256sum | cut -d ' ' -f 1)"
}

folder=$(dirname "$0")
users=${KCM_ACL_FILE:-/tmp/users.acl}
sed \
    -e "s/@PREFIX@/${KCM_PREFIX:-kcm}/g" \
    -e "s/@WORKER@/$(login_with "$KCM_WORKER_PASSWORD")/" \
    -e "s/@INJECTOR@/$(login_with "$KCM_INJECTOR_PASSWORD")/" \
    -e "s/@FLOWER@/$(login_with "$KCM_FLOWER_REDIS_PASSWORD")/" \
    -e "s/@ADMIN@/$(login_with "${KCM_ADMIN_PASSWORD:-}")/" \
    -e "s/@REPLICA@/$(login_with "${KCM_REPLICA_PASSWORD:-}")/" \
    -e "s/@SENTINEL@/$(login_with "${KCM_SENTINEL_PASSWORD:-}")/" \
    "$folder/users.acl" > "$users"

# Prints the address of the master that a sentinel says, and nothing if none answers.
ask_for_master() {
    for sentinel in $KCM_SENTINELS; do
        REDISCLI_AUTH=$KCM_WORKER_PASSWORD timeout 3 redis-cli -h "$sentinel" -p 26379 --user worker \
            --no-auth-warning SENTINEL get-master-addr-by-name kcm 2>/dev/null | head -n 1 |
            grep -x '[0-9a-fA-F.:]*' && return
    done
    return 1
}

# Passwords are no arguments, and Sentinel has the server write what it changes into this file.
config=$(dirname "$users")/redis.conf
: > "$config"
if [ -n "${KCM_SENTINELS:-}" ]; then
    : "${KCM_REPLICA_PASSWORD:?is not set}" "${KCM_SENTINEL_PASSWORD:?is not set}" \
        "${KCM_REDIS_ADDRESS:?is not set}"
    until master=$(ask_for_master); do
        echo "no sentinel answers yet: $KCM_SENTINELS"
        sleep 1
    done
    {
        echo "replica-announce-ip $KCM_REDIS_ADDRESS"
        echo "masteruser replica"
        echo "masterauth $KCM_REPLICA_PASSWORD"
        echo "min-replicas-to-write 1"
        echo "min-replicas-max-lag 2"
        echo "repl-diskless-sync-delay 0" # replicas of a new master; writes wait for the first
        [ "$master" = "$KCM_REDIS_ADDRESS" ] || echo "replicaof $master 6379"
    } > "$config"
fi

exec "${KCM_REDIS_SERVER:-redis-server}" "$config" \
    --aclfile "$users" \
    --appendonly yes \
    --appendfsync everysec \
    --maxmemory-policy noeviction \
    "$@"
