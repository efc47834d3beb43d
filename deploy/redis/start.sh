#!/bin/sh
# Starts Redis with kcm's users. The passwords come from the environment and go
# into the ACL file as SHA-256, so that neither arguments nor files show them.
# Further arguments go to redis-server. The users admin, replica and sentinel are
# off unless KCM_ADMIN_PASSWORD, KCM_REPLICA_PASSWORD and KCM_SENTINEL_PASSWORD are set.
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

exec "${KCM_REDIS_SERVER:-redis-server}" \
    --aclfile "$users" \
    --appendonly yes \
    --appendfsync everysec \
    --maxmemory-policy noeviction \
    "$@"
